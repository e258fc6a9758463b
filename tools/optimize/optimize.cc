#include "optimize/optimize.h"

#include <kgrpo/sdk/error.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include "base/keyed.h"
#include "base/wall_clock.h"
#include "loop/coder_cost.h"
#include "loop/metrics.h"
#include "loop/prompter.h"
#include "loop/round_faults.h"
#include "loop/rounds_in_flight.h"
#include "plugin/parts.h"

namespace kgrpo {
namespace {

constexpr uint64_t kIdleStarts = 8;  // passes from the start without a new kernel, after which the search ends

class Searching {
 public:
  Searching(const PipelineConfig& config, PipelineParts& parts, const OpenProblem& problem, const std::string& start,
            const Evaluation& start_evaluation, WorkerPool& pool, const SearchPlan& plan,
            const SearchListener& listener)
      : config_(config),
        parts_(parts),
        pool_(pool),
        plan_(plan),
        listener_(listener),
        prompter_(config, parts.policy.get()),
        known_suggestions_(parts.coder->Suggestions()),
        suggester_(plan.suggester.kind),
        start_(0, 0, problem, config_.loop),
        seen_{start, problem.source} {
    start_.StartFrom(start, start_evaluation);
    best_speedup_ = start_.current().speedup;
  }

  SearchResult Run() {
    uint64_t idle = 0;
    while (!Over()) {
      const uint64_t before = result_.evaluations;
      std::vector<Trajectory> beam = {start_};
      while (!beam.empty() && !beam.front().done() && !Over()) beam = Wave(beam);
      idle = result_.evaluations > before ? 0 : idle + 1;
      if (idle < kIdleStarts || !result_.ended.empty()) continue;
      if (suggester_ == Suggester::Kind::kPolicy && !known_suggestions_.empty()) {
        suggester_ = Suggester::Kind::kUniform;
        idle = 0;
      } else {
        result_.ended = "nothing new";
      }
    }
    if (const std::string shortened = prompter_.Shortened(); !shortened.empty()) spdlog::info("{}", shortened);
    result_.seconds = watch_.seconds();
    return std::move(result_);
  }

 private:
  using Slot = RoundsInFlight::Slot;

  bool Over() {
    if (!result_.ended.empty()) return true;
    if (parts_.cancelled()) {
      result_.stopped = true;
      result_.ended = "stopped by the user";
    } else if (result_.evaluations >= plan_.evaluations) {
      result_.ended = std::to_string(plan_.evaluations) + " evaluations";
    } else if (watch_.seconds() >= plan_.seconds) {
      result_.ended = "the time limit (--budget)";
    } else if (result_.cost >= plan_.max_cost) {
      result_.ended = "the cost limit (--max-cost)";
    }
    return !result_.ended.empty();
  }

  // One round from each kernel of the beam; returns the next beam.
  std::vector<Trajectory> Wave(const std::vector<Trajectory>& beam) {
    const Stopwatch watch;
    // Each suggestion may give a new kernel, which takes an evaluation.
    const uint64_t most = std::min(plan_.samples * beam.size(), plan_.evaluations - result_.evaluations);
    RolloutRequest request;
    request.purpose = Purpose::kHeldout;
    request.step = result_.waves;
    // After one evaluation failures are chance.
    request.most_faults = result_.evaluations > 0 ? 0 : std::min<size_t>(kMostFaults, most);
    request.under_way = plan_.under_way;
    std::deque<Slot> slots;  // a deque: addresses of slots in flight stay valid
    // In turns, so that a small wave serves the whole beam.
    for (uint64_t i = 0; i < most; ++i)
      Open(slots.emplace_back(beam[i % beam.size()].Fork(i), request), i, beam.size());
    Play(request, slots);
    Record(slots, watch.seconds());
    return Fastest(slots);
  }

  // Begins the round of the wave's slot `i`, with its prompt, and with a suggestion that needs no policy.
  void Open(Slot& slot, uint64_t i, size_t parents) {
    RoundRecord& round = slot.round;
    const bool from_policy = suggester_ == Suggester::Kind::kPolicy;
    prompter_.Begin(slot.trajectory, slot.trajectory, parts_.metrics, from_policy, &round);
    slot.suggestion_seed = Keyed(config_.seed, "optimize", {result_.waves, i}, 0);
    if (from_policy) return;
    if (suggester_ == Suggester::Kind::kFixed) {
      const std::vector<std::string>& sequence = plan_.suggester.sequence;
      round.suggestion = sequence[std::min<size_t>(round.round, sequence.size() - 1)];
      return;
    }
    // Suggestions for one parent differ: they are taken from one random permutation.
    const std::vector<std::string> unused = slot.trajectory.Unused(known_suggestions_);
    KeyedStream random(config_.seed, "optimize uniform", {result_.waves, i % parents});
    round.suggestion = unused[random.Permutation(unused.size())[(i / parents) % unused.size()]];
  }

  // Plays the rounds. After a stop, or at a limit of the coder's or the evaluator's own, only those that have landed
  // have an outcome.
  void Play(const RolloutRequest& request, std::deque<Slot>& slots) {
    const std::function<bool()> user = parts_.cancelled;
    parts_.cancelled = [this, &user] { return user() || watch_.seconds() >= plan_.seconds; };
    RoundsInFlight flight(config_, parts_, pool_, request);
    try {
      std::vector<Slot*> all;
      all.reserve(slots.size());
      for (Slot& slot : slots) all.push_back(&slot);
      if (suggester_ == Suggester::Kind::kPolicy) {
        flight.Suggest(all);
      } else {
        for (Slot* slot : all) flight.Implement(*slot);
      }
      for (size_t under_way = all.size(); under_way > 0;) {
        const std::vector<Slot*> landed = flight.Landed(request.under_way);
        under_way -= landed.size();
        for (Slot* slot : landed) {
          if (slot->round.evaluation) slot->round.failure.reset();  // ignore a failed reward: the search compares times
          slot->trajectory.Finish(slot->round);
        }
      }
      parts_.cancelled = user;
    } catch (...) {
      flight.Abandon();
      parts_.cancelled = user;
      try {
        throw;
      } catch (const Error& error) {
        if (error.code() != KGRPO_ERROR_BUDGET && error.code() != KGRPO_ERROR_CANCELLED) throw;
        // The results so far were paid for: keep them.
        if (error.code() == KGRPO_ERROR_BUDGET) result_.ended = "the coder's or the evaluator's own limit";
      }
    }
  }

  void Record(const std::deque<Slot>& slots, double seconds) {
    StepRecord wave;
    wave.step = ++result_.waves;
    wave.purpose = Purpose::kSearch;
    wave.stage_name = PurposeName(wave.purpose);
    wave.has_rollouts = true;
    for (const Slot& slot : slots) {
      result_.cost += slot.round.answer.cost;
      const TrajectoryRecord& played = slot.trajectory.record();
      if (!played.failed_round && played.rounds_done.size() == slot.round.round) continue;  // it did not land
      Count(played);
      TrajectoryRecord& record = wave.trajectories.emplace_back(played);
      if (record.failed_round) {
        record.rounds_done.clear();
      } else {
        record.rounds_done.erase(record.rounds_done.begin(), record.rounds_done.end() - 1);  // rounds of earlier waves
      }
    }
    if (!listener_.wave || wave.trajectories.empty()) return;
    wave.reward_mean = MeanReward(wave.trajectories);
    wave.finished_at = SecondsSince1970();
    MetricMap metrics = RolloutMetrics(wave.trajectories);
    metrics["time/rollout"] = seconds;
    metrics[kCostMetric] = result_.cost;
    for (const auto& [name, value] : metrics) wave.metrics.push_back({name, value});
    listener_.wave(wave);
  }

  void Count(const TrajectoryRecord& trajectory) {
    SearchCandidate candidate;
    candidate.round = trajectory.failed_round ? *trajectory.failed_round : trajectory.rounds_done.back();
    candidate.from_list = suggester_ != plan_.suggester.kind;
    for (const RoundRecord& round : trajectory.rounds_done) {
      if (round.applied) candidate.suggestions.push_back(round.suggestion);
    }
    if (candidate.round.evaluation) {
      candidate.repeated = !seen_.insert(candidate.round.answer.source).second;
      if (!candidate.repeated) ++result_.evaluations;
    }
    best_speedup_ = std::max(best_speedup_, candidate.round.speedup);
    candidate.evaluations = result_.evaluations;
    candidate.best_speedup = best_speedup_;
    if (listener_.candidate) listener_.candidate(candidate);
    // Only the record of the wave needs them, and they are large.
    candidate.round.messages.clear();
    candidate.round.code_a.clear();
    candidate.round.code_b.clear();
    result_.candidates.push_back(std::move(candidate));
  }

  std::vector<Trajectory> Fastest(const std::deque<Slot>& slots) const {
    std::vector<const Trajectory*> order;
    for (const Slot& slot : slots) {
      if (slot.trajectory.record().dropped.empty()) order.push_back(&slot.trajectory);
    }
    std::ranges::stable_sort(order, {}, [](const Trajectory* t) { return t->current().seconds; });
    std::vector<Trajectory> beam;
    std::set<std::string> sources;
    for (const Trajectory* trajectory : order) {
      if (beam.size() == plan_.beam) break;
      if (sources.insert(trajectory->code_b()).second) beam.push_back(*trajectory);
    }
    return beam;
  }

  const PipelineConfig& config_;
  PipelineParts& parts_;
  WorkerPool& pool_;
  const SearchPlan& plan_;
  const SearchListener& listener_;
  Prompter prompter_;
  std::vector<std::string> known_suggestions_;
  Suggester::Kind suggester_;  // the plan's; the coder's list once a policy suggests nothing new
  Trajectory start_;
  std::set<std::string> seen_;  // kernels that were judged
  double best_speedup_ = 0;
  Stopwatch watch_;
  SearchResult result_;
};

}  // namespace

std::string SearchCandidate::outcome() const {
  if (round.evaluation) return round.evaluation->verdict;
  return round.failure ? "evaluator_failed" : CoderOutcomeName(round.answer.outcome);
}

void RequireSearchable(const SearchPlan& plan, const Evaluation& start, const PipelineParts& parts) {
  if (plan.beam == 0 || plan.samples == 0 || plan.evaluations == 0)
    throw Error(KGRPO_ERROR_INVALID, "beam, samples and evaluations must be at least 1");
  if (!start.correct)
    throw Error(KGRPO_ERROR_INVALID,
                "the kernel to begin with is not correct (" + start.verdict + "): " + start.diagnosis);
  RequireSuggester(plan.suggester, parts);
}

SearchResult Search(const PipelineConfig& config, PipelineParts& parts, const OpenProblem& problem,
                    const std::string& start, const Evaluation& start_evaluation, WorkerPool& pool,
                    const SearchPlan& plan, const SearchListener& listener) {
  RequireSearchable(plan, start_evaluation, parts);
  PipelineConfig own = config;
  own.loop.advance = Advance::kCorrect;  // the search never continues from an incorrect kernel
  return Searching(own, parts, problem, start, start_evaluation, pool, plan, listener).Run();
}

namespace {

constexpr size_t kConfirmations = 16;  // thorough evaluations at most

}  // namespace

ConfirmedKernel Confirm(const PipelineConfig& config, PipelineParts& parts, const OpenProblem& problem,
                        const std::string& start, const std::vector<SearchCandidate>& candidates) {
  ConfirmedKernel confirmed;
  confirmed.seed = Keyed(config.seed, "thorough inputs/" + problem.name, {}, 0);
  confirmed.source = start;
  const auto evaluate = [&](const std::string& source) {
    Evaluation evaluation = EvaluateWithRetries(*parts.evaluator, problem.problem, source, confirmed.seed,
                                                /*thorough=*/true, parts.cancelled);
    evaluation.CompareWith(problem.baseline);
    return evaluation;
  };
  confirmed.start = evaluate(start);
  if (!confirmed.start.correct)
    throw Error(KGRPO_ERROR_INVALID, "the kernel to begin with is not correct when it is judged thoroughly (" +
                                         confirmed.start.verdict + "): " + confirmed.start.diagnosis);
  confirmed.evaluation = confirmed.start;
  std::vector<const SearchCandidate*> order;
  for (const SearchCandidate& candidate : candidates) {
    if (candidate.round.speedup > 0 && !candidate.repeated) order.push_back(&candidate);
  }
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [](const SearchCandidate* candidate) { return candidate->round.speedup; });
  if (order.size() > kConfirmations) order.resize(kConfirmations);
  for (const SearchCandidate* candidate : order) {
    Evaluation evaluation;
    try {
      evaluation = evaluate(candidate->round.answer.source);
    } catch (const Error& error) {  // a kernel that cannot be judged is not delivered
      if (!IsLasting(error.code())) throw;
      spdlog::warn("a candidate cannot be confirmed: {}", error.what());
    }
    if (evaluation.correct && evaluation.seconds < confirmed.start.seconds) {
      confirmed.source = candidate->round.answer.source;
      confirmed.evaluation = std::move(evaluation);
      confirmed.suggestions = candidate->suggestions;
      break;
    }
    ++confirmed.refuted;
  }
  return confirmed;
}

}  // namespace kgrpo
