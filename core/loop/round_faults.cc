#include "loop/round_faults.h"

#include "loop/trajectory.h"

#include <kgrpo/support/sha256.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <thread>
#include <utility>

namespace kgrpo {
namespace {

// ", kernel 5f3a09c81b2e": the first digits of its SHA-256; dropped_rounds has the whole text.
std::string KernelText(const std::string& source) {
  return source.empty() ? "" : ", kernel " + Sha256(source).substr(0, 12);
}

// Both count from 0, as in run.sqlite and the report: "the first, round 1 of trajectory 5 (vector_add, kernel
// 5f3a09c81b2e): the service is down".
std::string First(const std::vector<TrajectoryRecord>& trajectories, RoundPart part) {
  for (const TrajectoryRecord& trajectory : trajectories) {
    const auto fault = trajectory.failed_round ? FaultOf(*trajectory.failed_round) : std::nullopt;
    if (!fault || fault->part != part) continue;
    return "the first, round " + std::to_string(trajectory.failed_round->round) + " of trajectory " +
           std::to_string(trajectory.trajectory) + " (" + trajectory.problem_name +
           KernelText(trajectory.failed_round->answer.source) + "): " + fault->message;
  }
  return "";
}

template <typename Map>
auto Largest(const Map& counts) {
  return std::max_element(counts.begin(), counts.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
}

}  // namespace

bool IsLasting(kgrpo_error_code code) {
  return code == KGRPO_ERROR_INVALID || code == KGRPO_ERROR_NOT_FOUND || code == KGRPO_ERROR_UNSUPPORTED;
}

bool FailsOneRound(RoundPart part, kgrpo_error_code code) {
  if (part == RoundPart::kEvaluator) return true;
  return !IsLasting(code) && code != KGRPO_ERROR_CANCELLED && code != KGRPO_ERROR_BUDGET;
}

void RequireFailsOneRound(RoundPart part, const Error& error, bool cancelled) {
  if (!FailsOneRound(part, error.code())) throw error;
  if (cancelled) throw Error(KGRPO_ERROR_CANCELLED, "stopped by the user");
}

Evaluation EvaluateWithRetries(Evaluator& evaluator, const Problem& problem, const std::string& source, uint64_t seed,
                               bool thorough, const std::function<bool()>& cancelled) {
  for (std::chrono::milliseconds pause{500}; true; pause *= 2) {
    try {
      return evaluator.Evaluate(problem, source, seed, thorough);
    } catch (const Error& error) {
      RequireFailsOneRound(RoundPart::kEvaluator, error, cancelled());
      if (IsLasting(error.code()) || pause > std::chrono::seconds(2)) throw;
      spdlog::warn("the evaluator failed, and is asked again: {}", error.what());
    }
    std::this_thread::sleep_for(pause);
  }
}

RoundFault FaultOf(const RoundFailure& failure) {
  if (!failure.message.starts_with(kNoScore)) return {failure.part, "", failure.message};
  return {failure.part, kNoScoreKind, failure.message.substr(kNoScore.size())};
}

std::optional<RoundFault> FaultOf(const RoundRecord& round) {
  if (round.failure) return FaultOf(*round.failure);
  if (!CoderFailed(round.answer)) return std::nullopt;
  return RoundFault{RoundPart::kCoder, CoderOutcomeName(round.answer.outcome), round.answer.message};
}

std::array<PartCounts, kRoundParts.size()> CountParts(const std::vector<TrajectoryRecord>& trajectories) {
  std::array<PartCounts, kRoundParts.size()> counts;
  const auto add = [&counts](const RoundRecord& round, bool scored) {
    auto& [coder, evaluator, reward] = counts;
    ++coder.asked;
    // A kernel that the coder returned unchanged may have kept its evaluation.
    if (round.evaluation && (!round.unchanged || round.evaluate_seconds > 0)) ++evaluator.asked;
    if (scored) ++reward.asked;
    if (CoderFailed(round.answer)) ++coder.failed;  // whatever the reward did with it
    if (!round.failure) return;
    PartCounts& failed = counts[static_cast<size_t>(round.failure->part)];
    ++failed.failed;
    if (!scored) ++failed.asked;
  };
  for (const TrajectoryRecord& trajectory : trajectories) {
    for (const RoundRecord& round : trajectory.rounds_done) add(round, true);
    if (trajectory.failed_round) add(*trajectory.failed_round, false);
  }
  return counts;
}

void PartFaults::Count(const std::string& kind, const std::string& message, size_t times) {
  faults_[kind][message] += times;
  count_ += times;
}

std::string PartFaults::Commonest() const {
  if (count_ == 0) return "";
  std::map<std::string, size_t> kinds;
  for (const auto& [kind, messages] : faults_) {
    for (const auto& [message, times] : messages) kinds[kind] += times;
  }
  const auto& [kind, all] = *Largest(kinds);
  const auto& [message, times] = *Largest(faults_.at(kind));
  return "the commonest, " + std::to_string(kind.empty() ? times : all) + " times" + (kind.empty() ? "" : ", is ") +
         kind + ": " + message;
}

std::string PartFaults::Verb() const {
  const bool no_score = faults_.contains(kNoScoreKind);
  return no_score && faults_.size() == 1 ? "gave no score" : no_score ? "failed or gave no score" : "failed";
}

std::string PartFaults::AllFailed(const std::string& which) const {
  return std::string("the ") + RoundPartName(part_) + "'s " + which + std::to_string(count_) + " answers all " +
         Verb() + "; " + Commonest() + ". ";
}

void PartFaults::Throw(const std::string& which) const {
  throw Error(KGRPO_ERROR_UNAVAILABLE, AllFailed(which + " ") +
                                           "Nothing can be learned from them: the cause is in the " +
                                           RoundPartName(part_) + "'s script, options or service");
}

std::array<PartFaults, kRoundParts.size()> NoFaults() {
  return {PartFaults(RoundPart::kCoder), PartFaults(RoundPart::kEvaluator), PartFaults(RoundPart::kReward)};
}

std::string RoundFaults::Add(const std::vector<TrajectoryRecord>& trajectories, size_t enough) {
  const auto counts = CountParts(trajectories);
  if (counts[0].asked == 0) return "";
  size_t kernels = 0;
  const auto count = [&](const RoundRecord& round) {
    kernels += round.answer.outcome == KGRPO_CODER_OK ? 1 : 0;
    if (const auto fault = FaultOf(round)) faults_[static_cast<size_t>(fault->part)].Count(fault->kind, fault->message);
  };
  for (const TrajectoryRecord& trajectory : trajectories) {
    std::for_each(trajectory.rounds_done.begin(), trajectory.rounds_done.end(), count);
    if (trajectory.failed_round) count(*trajectory.failed_round);
  }
  std::string told;
  const auto tell = [&told](const std::string& text) { told += (told.empty() ? "" : "; ") + text; };
  const bool told_of_kernels = std::exchange(without_kernel_, kernels == 0);
  for (const RoundPart part : kRoundParts) {
    const auto i = static_cast<size_t>(part);
    const auto& [asked, failed] = counts[i];
    if (asked == 0) continue;
    const bool told_before = std::exchange(series_[i].failing, failed > 0);
    if (failed == asked) {
      if (++series_[i].steps >= enough) faults_[i].Throw("last");
      if (series_[i].steps == 1)
        tell(faults_[i].AllFailed("") + "After " + std::to_string(enough) + " such steps in a row the run stops");
      continue;
    }
    series_[i].steps = 0;
    const std::string verb = std::exchange(faults_[i], PartFaults(part)).Verb();
    if (part == RoundPart::kCoder && kernels == 0 && !told_of_kernels) {
      tell("none of the coder's " + std::to_string(asked) +
           " answers was a new kernel: the suggestions did not apply, were not understood, or contained none. If that "
           "lasts, nothing is learned");
    } else if (part != RoundPart::kCoder && failed > 0 && !told_before) {
      tell(std::to_string(failed) + " of the " + RoundPartName(part) + "'s " + std::to_string(asked) + " answers " +
           verb + ", and their trajectories end there; " + First(trajectories, part));
    }
  }
  return told;
}

std::array<PartFaults, kRoundParts.size()> FaultsOf(RunDatabase& database) {
  auto faults = NoFaults();
  for (const RoundFaultCount& count : database.ReadRoundFaults()) {
    const RoundFault fault = count.part == RoundPart::kCoder ? RoundFault{count.part, count.kind, count.message}
                                                             : FaultOf(RoundFailure{count.part, count.message});
    faults[static_cast<size_t>(fault.part)].Count(fault.kind, fault.message, count.count);
  }
  return faults;
}

std::string CommonestFault(RunDatabase& database) {
  const auto faults = FaultsOf(database);
  const PartFaults& most = *std::max_element(
      faults.begin(), faults.end(), [](const PartFaults& a, const PartFaults& b) { return a.count() < b.count(); });
  if (most.count() == 0) return "";
  return std::string("of the ") + RoundPartName(most.part()) + "'s failures " + most.Commonest();
}

std::string NothingLearned(RunDatabase& database) {
  struct StageSteps {
    std::string name;
    size_t steps = 0, with_samples = 0, taught = 0;
  };
  std::map<uint64_t, StageSteps> stages;
  const std::set<uint64_t> with_advantage = database.StepsWithAdvantage();
  for (const StepSummary& step : database.Steps()) {
    StageSteps& stage = stages[step.stage];
    stage.name = step.stage_name;
    ++stage.steps;
    if (step.reward_mean) ++stage.with_samples;
    if (!step.has_rollouts || with_advantage.contains(step.step)) ++stage.taught;
  }
  std::string text;
  for (const auto& [index, stage] : stages) {
    if (stage.taught > 0) continue;
    text += text.empty() ? "nothing was learned" : "; nor";
    if (stages.size() > 1) text += " in stage " + std::to_string(index + 1) + " (" + stage.name + ")";
    text += stage.with_samples == 0 ? ": in no step was a sample left to train on"
                                    : ": in each of the " + std::to_string(stage.with_samples) +
                                          " steps with samples every advantage was 0 (each group had one sample "
                                          "or equal returns, or each sample was masked or its return cut)";
  }
  const std::string commonest = text.empty() ? "" : CommonestFault(database);
  return text + (commonest.empty() ? "" : "; " + commonest);
}

}  // namespace kgrpo
