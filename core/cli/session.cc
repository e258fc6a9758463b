#include "cli/session.h"

#include <sstream>
#include <utility>

#include <kgrpo/support/closest.h>  // JoinedText
#include <kgrpo/support/sha256.h>
#include "base/cancel.h"
#include "loop/stage.h"

namespace kgrpo::cli {
namespace {

using Places = std::map<std::string, std::string>;  // PipelineConfig::option_places

// Makes an instance of T, the C++ class of `Interface`. Failures name the part, and the option's place where it has
// one.
template <typename T, typename Interface>
std::unique_ptr<T> Make(const PluginLibrary& library, Role role, const std::string& part, const kgrpo_host* host,
                        const nlohmann::json& options, const Places& places = {}) {
  const auto* table = library.Table<Interface>(role);
  try {
    return std::make_unique<T>(table, host, options);
  } catch (const Error& error) {
    throw PartError(error, part, library.name(), places);
  }
}

// "mine.yaml:7:12: " where the mistake begins with an option that stands there; else empty.
std::string PlaceOf(const std::string& mistake, const std::string& part, const Places& places) {
  constexpr std::string_view kOptions = "options.";
  if (!mistake.starts_with(kOptions)) return "";
  const std::string option = mistake.substr(0, mistake.find_first_of(".:[ ", kOptions.size()));
  const auto place = places.find(part + "." + option);
  return place == places.end() ? "" : place->second + ": ";
}

std::vector<std::string> MistakesOf(const std::string& message, const std::string& part, const std::string& plugin,
                                    const Places& places) {
  const std::string named = part + " (" + plugin + "): ";
  std::vector<std::string> mistakes;
  std::istringstream lines(message);
  for (std::string line; std::getline(lines, line);) {
    if (mistakes.empty() || line.starts_with("options."))
      mistakes.push_back(PlaceOf(line, part, places) + named + line);
    else
      mistakes.back() += "\n" + line;
  }
  if (mistakes.empty()) mistakes.push_back(named + "it does not say why");
  return mistakes;
}

}  // namespace

PartError::PartError(const Error& error, const std::string& part, const std::string& plugin, const Places& places)
    : PartError(error.code(), MistakesOf(error.what(), part, plugin, places)) {}

PartError::PartError(kgrpo_error_code code, std::vector<std::string> mistakes)
    : Error(code, JoinedText(mistakes, "\n")), mistakes_(std::move(mistakes)) {}

Session::Session(const Globals& globals) : loader_(PluginDirectories(globals.plugin_path)) {}

PipelineConfig Session::Load(const LoadRequest& request) {
  return LoadPipeline(request,
                      [&](Role role, const std::string& plugin) { return loader_.Load(plugin).OptionsSchema(role); });
}

HostServices& Session::StartServices(uint64_t seed, const std::filesystem::path& artifact_root) {
  HostOptions options;
  options.seed = seed;
  options.artifact_root = artifact_root;
  services_ = std::make_unique<HostServices>(std::move(options));
  return *services_;
}

PipelineParts Session::MakeParts(const PipelineConfig& config, const std::set<Role>& roles, bool identify) {
  PipelineParts parts;
  HostServices* services = services_.get();
  parts.metrics = &services->metrics();
  parts.cancelled = CancelRequested;
  parts.seconds_waited = DeviceLocks::SecondsWaited;
  parts.all_seconds_waited = DeviceLocks::AllSecondsWaited;
  parts.take_metrics = [services] { return services->TakeMetrics(); };
  // Returns the library of a part. Instances are named after the part, so that random numbers do not depend on the
  // plugin; the cache is the plugin's.
  const auto library_of = [&](Role role, const std::string& part, const PluginChoice& choice) -> const PluginLibrary& {
    const PluginLibrary& library = loader_.Load(choice.plugin);
    if (!library.Plays(role)) library.Table<void>(role);  // throws, naming the roles that it has
    if (identify) {
      parts.identities.push_back(
          {part, library.name(), library.version(), library.path().string(), Sha256OfFile(library.path())});
    }
    return library;
  };
  const auto make = [&]<typename T, typename Interface>(Role role, const std::string& part, const PluginChoice& choice,
                                                        std::type_identity<T>, std::type_identity<Interface>) {
    const PluginLibrary& library = library_of(role, part, choice);
    return Make<T, Interface>(library, role, part, services->ForInstance(part, library.name()), choice.options,
                              config.option_places);
  };
  using std::type_identity;
  if (roles.contains(Role::kCoder)) {  // the cheap ones first: their mistakes are found before a model is loaded
    parts.coder =
        make(Role::kCoder, "coder", config.coder, type_identity<Coder>(), type_identity<kgrpo_coder_interface>());
  }
  if (roles.contains(Role::kEvaluator)) {
    parts.evaluator = make(Role::kEvaluator, "evaluator", config.evaluator, type_identity<Evaluator>(),
                           type_identity<kgrpo_evaluator_interface>());
    if (config.screen) {
      parts.screen = make(Role::kEvaluator, "screen", config.screen->evaluator, type_identity<Evaluator>(),
                          type_identity<kgrpo_evaluator_interface>());
    }
  }
  if (roles.contains(Role::kReward)) {  // after the evaluator, whose metrics it may name
    parts.reward =
        make(Role::kReward, "reward", config.reward, type_identity<Reward>(), type_identity<kgrpo_reward_interface>());
  }
  if (roles.contains(Role::kPolicy)) {
    parts.policy =
        make(Role::kPolicy, "policy", config.policy, type_identity<Policy>(), type_identity<kgrpo_policy_interface>());
  }
  if (roles.contains(Role::kTrainer)) {
    for (size_t i = 0; i < config.stages.size(); ++i) {
      parts.trainers.push_back(make(Role::kTrainer, "trainer[" + std::to_string(i) + "]", config.stages[i].trainer,
                                    type_identity<Trainer>(), type_identity<kgrpo_trainer_interface>()));
    }
  }
  if (roles.contains(Role::kObserver)) {
    for (size_t i = 0; i < config.observers.size(); ++i) {
      parts.observers.push_back(make(Role::kObserver, "observers[" + std::to_string(i) + "]", config.observers[i],
                                     type_identity<Observer>(), type_identity<kgrpo_observer_interface>()));
    }
  }
  return parts;
}

void Session::CheckPlans(const PipelineConfig& config, const PipelineParts& parts, size_t problems, uint64_t done) {
  std::vector<std::string> mistakes;
  uint64_t end = 0;
  for (size_t i = 0; i < parts.trainers.size(); ++i) {
    end += config.stages[i].steps;
    if (end <= done) continue;
    kgrpo_trainer_plan plan = PlanOf(config, parts, i);
    if (plan.trajectories > 0) plan.problems = problems;
    try {
      parts.trainers[i]->CheckPlan(plan);
    } catch (const Error& error) {
      if (error.code() != KGRPO_ERROR_INVALID) throw;
      for (std::string& mistake : MistakesOf(error.what(), "trainer[" + std::to_string(i) + "]",
                                             config.stages[i].trainer.plugin, config.option_places))
        mistakes.push_back(std::move(mistake));
    }
  }
  if (!mistakes.empty()) throw PartError(KGRPO_ERROR_INVALID, std::move(mistakes));
}

nlohmann::json Session::Checked(Role role, const std::string& plugin, const nlohmann::ordered_json& options) {
  return CheckOptions(options, loader_.Load(plugin).OptionsSchema(role), "", "--set");
}

std::unique_ptr<Policy> Session::MakePolicy(const std::string& plugin, const nlohmann::ordered_json& options) {
  const nlohmann::json checked = Checked(Role::kPolicy, plugin, options);
  const PluginLibrary& library = loader_.Load(plugin);
  return Make<Policy, kgrpo_policy_interface>(library, Role::kPolicy, "policy",
                                              services_->ForInstance("policy", library.name()), checked);
}

std::unique_ptr<Evaluator> Session::MakeEvaluator(const std::string& plugin, const nlohmann::ordered_json& options) {
  const nlohmann::json checked = Checked(Role::kEvaluator, plugin, options);
  const PluginLibrary& library = loader_.Load(plugin);
  return Make<Evaluator, kgrpo_evaluator_interface>(library, Role::kEvaluator, "evaluator",
                                                    services_->ForInstance("evaluator", library.name()), checked);
}

}  // namespace kgrpo::cli
