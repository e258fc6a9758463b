#include "cli/variant_check.h"

#include <array>
#include <set>
#include <string>
#include <utility>

#include "base/role.h"
#include "loop/run_config.h"

namespace kgrpo::cli {
namespace {

// The evaluator comes first: a reward may name its metrics.
constexpr std::array kMade = {Role::kEvaluator, Role::kCoder, Role::kReward, Role::kTrainer, Role::kObserver};

std::string TextOf(const PluginChoice& choice) { return choice.plugin + " " + choice.options.dump() + "\n"; }

// Returns a key: configurations with equal keys need only one check of this role.
std::string ChoiceOf(const PipelineConfig& config, Role role) {
  std::string text = std::string(RoleName(role)) + "\n";
  if (role == Role::kEvaluator || role == Role::kReward) text += TextOf(config.evaluator);
  if (role == Role::kReward) text += TextOf(config.reward);
  if (role == Role::kCoder || role == Role::kTrainer) text += TextOf(config.coder);  // a stage may draw from its list
  if (role == Role::kTrainer) {
    const LoopConfig& loop = config.loop;
    for (const uint64_t planned : {loop.batch_size, loop.trajectories_per_problem, uint64_t{loop.rounds},
                                   uint64_t{loop.sampling.max_new_tokens}, uint64_t{config.train_problems.size()}})
      text += std::to_string(planned) + " ";
    text += std::to_string(loop.sampling.temperature);
    for (const StageConfig& stage : config.stages)
      text += " " + std::to_string(stage.steps) + " " + std::to_string(static_cast<int>(stage.suggestions)) + " " +
              TextOf(stage.trainer);
  }
  if (role == Role::kObserver) {
    for (const PluginChoice& observer : config.observers) text += TextOf(observer);
  }
  return text;
}

// "" if there is none.
std::string FaultOfFile(const PipelineConfig& config) {
  Findings findings(Findings::Stop::kNever);
  CheckFile(config, &findings);
  return findings.failures.empty() ? "" : findings.failures.front();
}

class Checker {
 public:
  Checker(Session& session, const PlannedRun* checked) : session_(session) {
    if (checked == nullptr) return;
    for (const Role role : kMade) seen_.insert(ChoiceOf(checked->config, role));
    seen_.insert(FaultOfFile(checked->config));
  }

  void Check(const PlannedRun& run) {
    if (const std::string fault = FaultOfFile(run.config); !fault.empty() && seen_.insert(fault).second)
      Add(run, Error(KGRPO_ERROR_INVALID, fault));
    for (const Role role : kMade) {
      if (!seen_.insert(ChoiceOf(run.config, role)).second) continue;
      try {
        Make(run.config, role);
      } catch (const Error& error) {
        Add(run, error);
      }
    }
  }

  void ThrowMistakes() {
    if (!mistakes_.empty()) throw PartError(code_, std::move(mistakes_));
  }

 private:
  void Make(const PipelineConfig& config, Role role) {
    if (const std::string choice = TextOf(config.evaluator); choice != services_of_) {
      evaluator_ = {};
      session_.StartServices(config.seed);  // new services, without the metrics of the evaluator before
      services_of_ = choice;
      evaluator_failed_ = false;
    }
    const bool needs_evaluator = role == Role::kEvaluator || role == Role::kReward;
    if (needs_evaluator && evaluator_.evaluator == nullptr) {
      if (evaluator_failed_) return;  // already reported; the reward cannot be checked without it
      evaluator_failed_ = true;
      evaluator_ = session_.MakeParts(config, {Role::kEvaluator});
      evaluator_failed_ = false;
    }
    if (role == Role::kEvaluator) return;
    PipelineParts parts = session_.MakeParts(config, {role});
    if (role != Role::kTrainer) return;
    parts.coder = session_.MakeParts(config, {Role::kCoder}).coder;
    Findings first;  // throws
    CheckParts(config, parts, config.skip_unusable ? 0 : config.train_problems.size(), /*done=*/0, &first);
  }

  void Add(const PlannedRun& run, const Error& error) {
    if (mistakes_.empty() || error.code() == KGRPO_ERROR_INVALID) code_ = error.code();
    const auto* part = dynamic_cast<const PartError*>(&error);
    const std::vector<std::string> found = part != nullptr ? part->faults() : std::vector<std::string>{error.what()};
    const std::string variant = NameOfVariant(run.run);
    for (const std::string& mistake : found) {
      const bool placed = mistake.find(": " + variant + ": ") != std::string::npos;  // by PlanExperiment
      std::string shown = placed ? mistake : run.run.at.ToString() + ": " + variant + ": " + mistake;
      if (seen_.insert(shown).second) mistakes_.push_back(std::move(shown));
    }
  }

  Session& session_;
  std::string services_of_;  // the evaluator choice for which the session's services were made
  PipelineParts evaluator_;  // alive while rewards are made
  bool evaluator_failed_ = false;
  std::set<std::string> seen_;  // choices and mistakes
  std::vector<std::string> mistakes_;
  kgrpo_error_code code_ = KGRPO_ERROR_INVALID;
};

}  // namespace

void CheckVariantParts(Session& session, const std::vector<const PlannedRun*>& runs, const PlannedRun* checked) {
  Checker checker(session, checked);
  for (const PlannedRun* run : runs) checker.Check(*run);
  checker.ThrowMistakes();
}

}  // namespace kgrpo::cli
