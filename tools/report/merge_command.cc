// `kgrpo-host merge ADAPTER_DIR`: an adapter and its base as one whole model.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "cli/session.h"
#include "common/output_file.h"
#include "loop/checkpoint.h"
#include "model/command.h"
#include "model/model_input.h"

namespace kgrpo::cli {
namespace {

namespace fs = std::filesystem;

// The policy plugin merges an adapter into its base when it opens the adapter's folder, so it saves the whole model.
int Merge(const Globals& globals, const ModelOptions& options, const std::string& output) {
  if (!fs::exists(fs::path(options.model) / "adapter_config.json"))
    throw Error(KGRPO_ERROR_INVALID, options.model + " holds no adapter: it has no adapter_config.json");
  RequireEmpty("--output", output);
  Session session(globals);
  session.StartServices(0);
  const std::unique_ptr<Policy> policy = session.MakePolicy(options.plugin, PluginOptions(options));
  WriteModel(*policy, fs::absolute(output), nullptr);
  std::printf("%s: %s merged into its base\n", output.c_str(), options.model.c_str());
  return kFine;
}

}  // namespace

void AddMergeCommand(CLI::App& app, const Globals& globals, Action* action) {
  struct Given {
    ModelOptions model;
    std::string output;
  };
  auto given = std::make_shared<Given>();
  CLI::App* command = app.add_subcommand("merge", "An adapter and its base as one whole model");
  ModelOptions& model = given->model;
  command->add_option("ADAPTER_DIR", model.model, "A PEFT folder, such as the final/ of a run with an adapter")
      ->required();
  command->add_option("-o,--output", given->output, "The folder to write; new, or empty")->type_name("DIR")->required();
  command->add_option("--plugin", model.plugin, "The policy plugin")->capture_default_str();
  AddSetOption(command, &model.settings, "An option of the policy plugin");
  command->add_option("--dtype", model.dtype, "fp32 or bf16")->type_name("DTYPE");
  command->footer("Example:\n  kgrpo-host merge runs/quickstart_lora/final -o merged");
  command->callback([=, &globals] { *action = [=, &globals] { return Merge(globals, given->model, given->output); }; });
}

}  // namespace kgrpo::cli
