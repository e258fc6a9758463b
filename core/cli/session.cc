#include "cli/session.h"

#include <utility>

#include <kgrpo/support/sha256.h>
#include "base/cancel.h"

namespace kgrpo::cli {
namespace {

// Makes an instance of T, the C++ class of `Interface`. Failures name the part, and the option's place if it has one in
// `places` (PipelineConfig::option_places).
template <typename T, typename Interface>
std::unique_ptr<T> Make(const PluginLibrary& library, Role role, const std::string& part, const kgrpo_host* host,
                        const nlohmann::json& options, const std::map<std::string, std::string>& places = {}) {
  const auto* table = library.Table<Interface>(role);
  try {
    return std::make_unique<T>(table, host, options);
  } catch (const Error& error) {
    throw PartError(error, part, library.name(), places);
  }
}

// The host of an instance of the library's.
const kgrpo_host* HostOf(HostServices& services, const std::string& instance, const PluginLibrary& library) {
  return services.ForInstance(instance, library.name(), std::filesystem::absolute(library.path()).parent_path());
}

// Makes the parts of a pipeline. Instances are named after the part, so that random numbers do not depend on the
// plugin; the cache is the plugin's.
struct PartMaker {
  PluginLoader& loader;
  HostServices& services;
  const PipelineConfig& config;
  bool identify;
  Findings& findings;
  std::vector<PluginIdentity>* identities;

  // Sets *made, unless the plugin cannot make an instance. Returns true if it could.
  template <typename Interface, typename T>
  bool One(Role role, const std::string& part, const PluginChoice& choice, std::unique_ptr<T>* made) {
    return findings.Try([&] {
      const PluginLibrary& library = loader.Load(choice.plugin);
      if (!library.Plays(role)) library.Table<void>(role);  // throws, naming the roles that it has
      if (identify) {
        identities->push_back(
            {part, library.name(), library.version(), library.path().string(), Sha256OfFile(library.path())});
      }
      *made = Make<T, Interface>(library, role, part, HostOf(services, part, library), choice.options,
                                 config.option_places);
    });
  }

  // Fills *made with an instance of each choice; with none if one of them cannot be made.
  template <typename Interface, typename T>
  void List(Role role, const std::string& name, const std::vector<PluginChoice>& choices,
            std::vector<std::unique_ptr<T>>* made) {
    size_t count = 0;
    for (const PluginChoice& choice : choices) {
      const std::string part = name + "[" + std::to_string(made->size()) + "]";
      count += One<Interface>(role, part, choice, &made->emplace_back()) ? 1 : 0;
    }
    if (count < choices.size()) made->clear();
  }
};

}  // namespace

Session::Session(const Globals& globals) : loader_(PluginDirectories(globals.plugin_path)) {}

PipelineConfig Session::Load(const LoadRequest& request) {
  PipelineConfig config = LoadPipeline(
      request, [&](Role role, const std::string& plugin) { return loader_.Load(plugin).OptionsSchema(role); });
  const auto add = [&](const std::string& key, const PluginChoice& choice) {
    if (!choice.plugin.empty()) config.inputs.push_back({key, loader_.Load(choice.plugin).path().string()});
  };
  for (const auto& [role, choice] : {std::pair(Role::kPolicy, &config.policy),
                                     {Role::kCoder, &config.coder},
                                     {Role::kEvaluator, &config.evaluator},
                                     {Role::kReward, &config.reward}})
    if (request.roles.contains(role)) add(RoleName(role) + std::string(".plugin"), *choice);
  for (size_t i = 0; i < config.stages.size() && request.roles.contains(Role::kTrainer); ++i)
    add("trainer[" + std::to_string(i) + "].plugin", config.stages[i].trainer);
  return config;
}

HostServices& Session::StartServices(uint64_t seed, const std::filesystem::path& artifact_root) {
  HostOptions options;
  options.seed = seed;
  options.artifact_root = artifact_root;
  services_ = std::make_unique<HostServices>(std::move(options));
  return *services_;
}

PipelineParts Session::MakeParts(const PipelineConfig& config, const std::set<Role>& roles, bool identify,
                                 Findings* findings) {
  Findings first;  // throws
  PipelineParts parts;
  HostServices* services = services_.get();
  parts.metrics = &services->metrics();
  parts.cancelled = CancelRequested;
  parts.seconds_waited = DeviceLocks::SecondsWaited;
  parts.all_seconds_waited = DeviceLocks::AllSecondsWaited;
  parts.take_metrics = [services] { return services->TakeMetrics(); };
  PartMaker make{loader_, *services_, config, identify, findings != nullptr ? *findings : first, &parts.identities};
  if (roles.contains(Role::kCoder)) make.One<kgrpo_coder_interface>(Role::kCoder, "coder", config.coder, &parts.coder);
  if (roles.contains(Role::kEvaluator))
    make.One<kgrpo_evaluator_interface>(Role::kEvaluator, "evaluator", config.evaluator, &parts.evaluator);
  // The reward may name metrics of the evaluator.
  if (roles.contains(Role::kReward))
    make.One<kgrpo_reward_interface>(Role::kReward, "reward", config.reward, &parts.reward);
  if (roles.contains(Role::kPolicy))
    make.One<kgrpo_policy_interface>(Role::kPolicy, "policy", config.policy, &parts.policy);
  if (roles.contains(Role::kTrainer)) {
    std::vector<PluginChoice> trainers;
    for (const StageConfig& stage : config.stages) trainers.push_back(stage.trainer);
    make.List<kgrpo_trainer_interface>(Role::kTrainer, "trainer", trainers, &parts.trainers);
  }
  if (roles.contains(Role::kObserver))
    make.List<kgrpo_observer_interface>(Role::kObserver, "observers", config.observers, &parts.observers);
  return parts;
}

nlohmann::json Session::Checked(Role role, const std::string& plugin, const nlohmann::ordered_json& options) {
  return CheckOptions(options, loader_.Load(plugin).OptionsSchema(role), "", "--set");
}

std::unique_ptr<Policy> Session::MakePolicy(const std::string& plugin, const nlohmann::ordered_json& options) {
  const nlohmann::json checked = Checked(Role::kPolicy, plugin, options);
  const PluginLibrary& library = loader_.Load(plugin);
  return Make<Policy, kgrpo_policy_interface>(library, Role::kPolicy, "policy", HostOf(*services_, "policy", library),
                                              checked);
}

std::unique_ptr<Evaluator> Session::MakeEvaluator(const std::string& plugin, const nlohmann::ordered_json& options) {
  const nlohmann::json checked = Checked(Role::kEvaluator, plugin, options);
  const PluginLibrary& library = loader_.Load(plugin);
  return Make<Evaluator, kgrpo_evaluator_interface>(library, Role::kEvaluator, "evaluator",
                                                    HostOf(*services_, "evaluator", library), checked);
}

}  // namespace kgrpo::cli
