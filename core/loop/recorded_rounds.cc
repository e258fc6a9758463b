#include "loop/recorded_rounds.h"

#include "config/changes.h"
#include "config/node.h"
#include "loop/metrics.h"
#include "loop/prompter.h"
#include "loop/round_faults.h"
#include "store/inputs.h"
#include "store/readable.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <utility>

namespace kgrpo {
namespace {

// A suggestion is imitated if it made its kernel at least so many times as fast.
constexpr double kMinGain = 1.05;

std::string KeyOf(const std::string& problem, const std::string& kernel) { return problem + '\n' + kernel; }

// True for a round of an earlier version whose kernel a cheaper evaluator decided (`screen`): its time is an estimate.
bool IsEstimate(const RoundRecord& round) {
  return round.evaluation && std::ranges::find(round.evaluation->metrics, "screen/decided", &Metric::name) !=
                                 round.evaluation->metrics.end();
}

nlohmann::ordered_json PromptOf(const std::string& resolved_yaml) {
  std::vector<Diagnostic> mistakes;
  const Node root = ParseYaml(resolved_yaml, "", 0, &mistakes);
  const Node* prompt = root.Get("prompt");
  return prompt == nullptr ? nlohmann::ordered_json::object() : prompt->ToJson();
}

// A run whose rounds are read, beside the pipeline that reads them.
class Source {
 public:
  Source(RunDatabase& database, const PipelineConfig& config, const InputDigests& inputs)
      : ours_(inputs), theirs_(RecordedInputs(database)), changes_(database.ReadChanges()) {
    const auto changed =
        ChangesBetween(database.Get("resolved_yaml").value_or(""), config.resolved_yaml, config.removed);
    for (const Change& change : changed.value_or(std::vector<Change>())) {
      if (change.path.starts_with("evaluator") && !MayChangeOnResume(change.path, config.may_change))
        evaluator_ = "evaluator (" + change.path + ")";
    }
    for (const Purpose purpose : {Purpose::kTrain, Purpose::kHeldout, Purpose::kEvaluation, Purpose::kSearch})
      sources_.merge(database.ReadProblemSources(purpose));
  }

  // Why the round is of something else: "softmax_long", "device (the name)"; "" if it is not.
  std::string WhyOther(const OpenProblem& problem, const TrajectoryRecord& trajectory, const RoundRecord& round,
                       uint64_t step) const {
    if (!evaluator_.empty()) return evaluator_;
    const std::string other_problem = "problem (" + problem.name + ")";
    if (IsOther("problems." + problem.name, step)) return other_problem;
    if (IsOther("evaluator.options.command", step)) return "evaluator (evaluator.options.command)";
    const auto source = sources_.find(problem.name);
    if (source != sources_.end() && source->second != problem.source) return other_problem;
    const Evaluation& baseline = problem.baseline;
    const bool timed = round.evaluation && round.evaluation->correct;
    if (timed && round.evaluation->time_source != baseline.time_source)
      return "device (" + round.evaluation->time_source + ")";
    // A modelled time is the same each time.
    return baseline.modelled && trajectory.baseline_seconds != baseline.seconds ? "reference's time" : "";
  }

 private:
  bool IsOther(const std::string& key, uint64_t step) const {
    const auto ours = ours_.find(key + kContent), theirs = theirs_.find(key + kContent);
    if (ours == ours_.end() || theirs == theirs_.end()) return false;
    return AtStep(theirs->first, theirs->second, step, changes_) != ours->second;
  }

  InputDigests ours_, theirs_;
  std::vector<SettingChange> changes_;
  std::map<std::string, std::string> sources_;  // each problem's starting kernel; older records have no digest
  std::string evaluator_;                       // names the difference between the evaluators; empty: none
};

// The answer was paid for by the run that recorded it.
void RemoveCost(CoderAnswer* answer) {
  answer->prompt_tokens = answer->completion_tokens = 0;
  answer->cost = answer->seconds = 0;
  answer->attempts = 0;
  answer->reused = true;
  answer->estimated = false;
}

}  // namespace

RecordedRounds::RecordedRounds(const std::vector<std::string>& runs, const ProblemSet& problems,
                               const PipelineConfig& config, const InputDigests& inputs, uint64_t before) {
  std::map<std::string, uint32_t> index_of;
  for (size_t i = 0; i < problems.size(); ++i) index_of[problems[i].name] = static_cast<uint32_t>(i);
  for (const std::string& run : runs) {
    RunDatabase database = OpenRecord(run);
    const Source source(database, config, inputs);
    for (const Purpose purpose : kPurposes) {
      for (const uint64_t step : database.StepsWithRounds(purpose)) {
        if (run == config.output_dir && step >= before) continue;
        for (TrajectoryRecord& trajectory : database.ReadStep(purpose, step)) {
          const auto index = index_of.find(trajectory.problem_name);
          if (index == index_of.end()) continue;
          std::erase_if(trajectory.rounds_done, [&](const RoundRecord& round) {
            if (FaultOf(round).has_value()) return true;
            const std::string other = source.WhyOther(problems[index->second], trajectory, round, step);
            if (!other.empty()) ++others_[other];
            return !other.empty();
          });
          if (trajectory.rounds_done.empty()) continue;
          trajectory.problem = index->second;
          trajectory.dropped.clear();
          trajectory.failed_round.reset();
          trajectories_.push_back(std::move(trajectory));
        }
      }
    }
  }
  if (trajectories_.empty() && !others_.empty())
    throw Error(KGRPO_ERROR_INVALID, "no recorded round can be used" + LeftOut());
  for (TrajectoryRecord& trajectory : trajectories_) {
    std::erase_if(trajectory.rounds_done, IsEstimate);
    for (RoundRecord& round : trajectory.rounds_done) {
      ++rounds_;
      RemoveCost(&round.answer);
      round.evaluate_seconds = 0;
      Node& from = nodes_[KeyOf(trajectory.problem_name, round.code_b)];
      from.by_suggestion.emplace(SuggestionText(round.suggestion), &round);
      if (round.speedup == 0 || !round.evaluation) continue;
      if (from.fastest == nullptr || round.speedup > from.fastest->speedup) from.fastest = &round;
      Node& to = nodes_[KeyOf(trajectory.problem_name, round.answer.source)];
      const int exactness = round.evaluation->modelled ? 1 : 2;
      if (exactness < to.exactness) continue;
      to.speedup = round.speedup;
      to.exactness = exactness;
    }
  }
  for (size_t i = 0; i < problems.size(); ++i) nodes_[KeyOf(problems[i].name, problems[i].source)].speedup = 1;
}

std::string RecordedRounds::LeftOut() const {
  std::string text;
  for (const auto& [reason, count] : others_)
    text += (text.empty() ? "; left out: " : ", ") + std::to_string(count) + " of another " + reason;
  return text;
}

const RoundRecord* RecordedRounds::Find(const std::string& problem, const std::string& kernel,
                                        const std::string& suggestion) const {
  const auto node = nodes_.find(KeyOf(problem, kernel));
  if (node == nodes_.end()) return nullptr;
  const auto round = node->second.by_suggestion.find(SuggestionText(suggestion));
  return round == node->second.by_suggestion.end() ? nullptr : round->second;
}

std::vector<TrajectoryRecord> RecordedRounds::ToImitate() const {
  std::vector<TrajectoryRecord> imitated;
  for (const TrajectoryRecord& trajectory : trajectories_) {
    TrajectoryRecord chosen = trajectory;
    chosen.trajectory = imitated.size();
    chosen.rounds_done.clear();
    for (const RoundRecord& state : trajectory.rounds_done) {
      const Node& node = nodes_.at(KeyOf(trajectory.problem_name, state.code_b));
      const RoundRecord* shown = node.fastest;
      if (shown == nullptr || shown->speedup < kMinGain * node.speedup || shown->speedup == 0) continue;
      RoundRecord& round = chosen.rounds_done.emplace_back(*shown);
      round.round = state.round;
      round.messages = state.messages;
      round.code_a = state.code_a;
      round.prompt_ids.clear();
      round.completion_ids.clear();
      round.logprobs.clear();
      round.outcome.reset();
    }
    if (!chosen.rounds_done.empty()) imitated.push_back(std::move(chosen));
  }
  if (imitated.empty()) {
    throw Error(KGRPO_ERROR_INVALID,
                "demonstrations.from: none of the " + std::to_string(rounds_) +
                    " recorded rounds on this pipeline's training problems made its kernel 1.05 times as fast" +
                    LeftOut());
  }
  return imitated;
}

void RequireSamePrompts(const std::vector<std::string>& runs, const PipelineConfig& config) {
  const nlohmann::ordered_json ours = PromptOf(config.resolved_yaml), none;
  for (const std::string& run : runs) {
    const nlohmann::ordered_json theirs = PromptOf(OpenRecord(run).Get("resolved_yaml").value_or(""));
    for (const char* key : {"system", "user", "enable_thinking"}) {
      if (theirs.value(key, none) == ours.value(key, none)) continue;
      throw Error(KGRPO_ERROR_INVALID, "the prompts of " + run + " cannot be imitated: prompt." + key +
                                           " differs from this pipeline's. Use the run's templates, or other runs");
    }
  }
}

ImitatedRounds ReadImitatedRounds(const PipelineConfig& config, size_t stage, uint64_t first_step,
                                  const ProblemSet& problems, const PipelineParts& parts) {
  std::vector<std::string> runs = config.stages.at(stage).demonstrations.from;
  std::ranges::replace(runs, kOwnRun, config.output_dir);
  RequireSamePrompts(runs, config);
  const RecordedRounds recorded(runs, problems, config, parts.inputs, first_step);
  ImitatedRounds imitated = {recorded.ToImitate(), 0, recorded.size(), recorded.LeftOut()};
  const Policy& policy = *parts.policy;
  const Prompter prompter(config, &policy);
  for (TrajectoryRecord& trajectory : imitated.trajectories) {
    for (RoundRecord& round : trajectory.rounds_done) {
      round.prompt_ids = prompter.Encode(round.messages);
      round.completion_ids = policy.EncodeCompletion(round.suggestion);
    }
    std::erase_if(trajectory.rounds_done, [&](const RoundRecord& round) {
      // A truncated suggestion would be taught to end there.
      return round.truncated || round.prompt_ids.size() > prompter.room() ||
             round.completion_ids.size() > config.loop.sampling.max_new_tokens;
    });
    imitated.states += trajectory.rounds_done.size();
  }
  if (imitated.states == 0) {
    throw Error(KGRPO_ERROR_INVALID,
                "demonstrations.from: the prompts of all recorded rounds are too long for the context, or their "
                "suggestions were cut off or are too long for loop.sampling.max_new_tokens");
  }
  return imitated;
}

}  // namespace kgrpo
