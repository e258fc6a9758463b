// `kgrpo-host merge ADAPTER_DIR`: an adapter and its base as one whole model.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "base/default_plugins.h"
#include "cli/session.h"
#include "common/arguments.h"
#include "loop/checkpoint.h"
#include "report/command.h"

namespace kgrpo::cli {
namespace {

namespace fs = std::filesystem;

struct MergeOptions {
  std::string adapter, output, dtype;
  std::string plugin = KGRPO_DEFAULT_POLICY;
  std::vector<std::string> settings;
};

// The policy plugin merges an adapter into its base when it opens the adapter's folder, so it saves the whole model.
int Merge(const Globals& globals, const MergeOptions& options) {
  if (!fs::exists(fs::path(options.adapter) / "adapter_config.json"))
    throw Error(KGRPO_ERROR_INVALID, options.adapter + " holds no adapter: it has no adapter_config.json");
  RequireEmpty("--output", options.output);
  Session session(globals);
  session.StartServices(0);
  nlohmann::ordered_json of_policy = OptionsFromSettings(options.settings);
  of_policy["model"] = options.adapter;
  if (!options.dtype.empty()) of_policy["dtype"] = options.dtype == "fp32" ? "float32" : "bfloat16";
  const std::unique_ptr<Policy> policy = session.MakePolicy(options.plugin, of_policy);
  WriteModel(*policy, fs::absolute(options.output), nullptr);
  std::printf("%s: %s merged into its base\n", options.output.c_str(), options.adapter.c_str());
  return kFine;
}

}  // namespace

void AddMergeCommand(CLI::App& app, const Globals& globals, Action* action) {
  auto options = std::make_shared<MergeOptions>();
  CLI::App* command = app.add_subcommand("merge", "An adapter and its base as one whole model");
  command->add_option("ADAPTER_DIR", options->adapter, "A PEFT folder, such as the final/ of a run with an adapter")
      ->required();
  command->add_option("-o,--output", options->output, "The folder to write; new, or empty")
      ->type_name("DIR")
      ->required();
  command->add_option("--plugin", options->plugin, "The policy plugin")->capture_default_str();
  AddSetOption(command, &options->settings, "An option of the policy plugin");
  command->add_option("--dtype", options->dtype, "Number format of the weights")
      ->check(CLI::IsMember({"fp32", "bf16"}));
  command->footer("Example:\n  kgrpo-host merge runs/quickstart_lora/final -o merged");
  command->callback([=, &globals] { *action = [=, &globals] { return Merge(globals, *options); }; });
}

}  // namespace kgrpo::cli
