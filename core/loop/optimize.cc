#include "loop/optimize.h"

#include "base/keyed.h"
#include "loop/candidates.h"
#include "loop/round_faults.h"
#include "loop/rounds_in_flight.h"
#include "loop/screen.h"
#include "loop/stopwatch.h"
#include "loop/untried.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <utility>

namespace kgrpo {
namespace {

constexpr uint64_t kIdleStarts = 8;  // passes from the start without a new kernel, after which the search ends
constexpr const char* kNothingNew = "nothing new";

class Searching {
 public:
  Searching(const PipelineConfig& config, PipelineParts& parts, const OpenProblem& problem, const std::string& start,
            const Evaluation& start_evaluation, WorkerPool& pool, const SearchPlan& plan,
            const std::function<void(const SearchCandidate&)>& tell)
      : config_(config),
        parts_(parts),
        pool_(pool),
        plan_(plan),
        system_(config.prompt.system, "prompt.system"),
        user_(config.prompt.user, "prompt.user"),
        known_suggestions_(parts.coder->Suggestions()),
        start_(0, 0, problem, config_.loop),
        log_(problem, start, start_evaluation, tell, &result_) {
    start_.StartFrom(start, start_evaluation);
    if (plan.suggester.kind == Suggester::Kind::kPolicy && !known_suggestions_.empty())
      untried_.emplace(known_suggestions_, start_);
  }

  SearchResult Run() {
    SearchFromStart();
    if (untried_ && result_.ended == kNothingNew) TryTheList();
    result_.seconds = watch_.seconds();
    return std::move(result_);
  }

 private:
  using Slot = RoundsInFlight::Slot;

  void SearchFromStart() {
    uint64_t idle = 0;
    while (!Over()) {
      const uint64_t before = result_.evaluations;
      std::vector<Trajectory> beam = {start_};
      while (!beam.empty() && !beam.front().done() && !Over()) beam = Wave(beam);
      idle = result_.evaluations > before ? 0 : idle + 1;
      if (idle == kIdleStarts && result_.ended.empty()) result_.ended = kNothingNew;
    }
  }

  // Continues with the coder's list once the policy suggests nothing new.
  void TryTheList() {
    result_.ended.clear();
    from_list_ = true;
    while (!Over()) {
      std::deque<Slot> slots;
      for (const Untried::Choice& choice :
           untried_->Next(MostSuggestions(plan_.beam), plan_.beam, plan_.samples, config_.seed, result_.waves))
        Open(slots, *choice.from).round.suggestion = choice.suggestion;
      if (slots.empty()) {
        result_.ended = "all suggestions of the coder's list were tried";
      } else {
        Land(slots);
      }
    }
  }

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
    const uint64_t most = MostSuggestions(beam.size());
    std::deque<Slot> slots;  // a deque: addresses of slots in flight stay valid
    // In turns, so that a small wave serves the whole beam.
    for (uint64_t i = 0; i < most; ++i) Open(slots, beam[i % beam.size()]);
    Suggest(slots, beam.size());
    Land(slots);
    return Fastest(slots);
  }

  // Each may be a new kernel, which takes an evaluation; with a screen only the promising ones do.
  uint64_t MostSuggestions(uint64_t kernels) const {
    const uint64_t all = plan_.samples * kernels;
    return plan_.screen == nullptr ? std::min(all, plan_.evaluations - result_.evaluations) : all;
  }

  // A round from that kernel, without a suggestion yet.
  Slot& Open(std::deque<Slot>& slots, const Trajectory& from) {
    Slot& slot = slots.emplace_back(from.Fork(slots.size()));
    slot.round.round = slot.trajectory.round();
    slot.round.code_a = slot.trajectory.code_a();
    slot.round.code_b = slot.trajectory.code_b();
    slot.round.messages = PromptMessages(system_, user_, slot.trajectory.Prompt(parts_.metrics));
    return slot;
  }

  void Land(std::deque<Slot>& slots) {
    Play(slots);
    ++result_.waves;
    for (const Slot& slot : slots) Count(slot);
  }

  void Suggest(std::deque<Slot>& slots, size_t parents) {
    const Suggester& suggester = plan_.suggester;
    if (suggester.kind == Suggester::Kind::kPolicy) return SuggestByPolicy(slots);
    for (size_t i = 0; i < slots.size(); ++i) {
      Slot& slot = slots[i];
      if (suggester.kind == Suggester::Kind::kFixed) {
        slot.round.suggestion = suggester.sequence[std::min<size_t>(slot.round.round, suggester.sequence.size() - 1)];
        continue;
      }
      // Suggestions for one parent differ: they are taken from one random permutation.
      std::vector<std::string> unused;
      for (const std::string& suggestion : known_suggestions_) {
        if (!slot.trajectory.Suggested(suggestion)) unused.push_back(suggestion);
      }
      if (unused.empty()) unused = known_suggestions_;
      KeyedStream random(config_.seed, "optimize uniform", {result_.waves, i % parents});
      slot.round.suggestion = unused[random.Permutation(unused.size())[(i / parents) % unused.size()]];
    }
  }

  void SuggestByPolicy(std::deque<Slot>& slots) {
    const kgrpo_sampling sampling = SamplingOf(config_.loop.sampling);
    ChatOptions chat;
    chat.enable_thinking = config_.prompt.enable_thinking;
    std::vector<Policy::GenerateRequest> requests;
    for (size_t i = 0; i < slots.size(); ++i) {
      slots[i].round.prompt_ids = parts_.policy->EncodeChat(slots[i].round.messages, chat);
      requests.push_back({slots[i].round.prompt_ids, Keyed(config_.seed, "optimize", {result_.waves, i}, 0)});
    }
    const size_t batch = config_.loop.generation_batch == 0 ? requests.size() : config_.loop.generation_batch;
    for (size_t first = 0; first < requests.size(); first += batch) {
      const auto chunk = std::span(requests).subspan(first, std::min(batch, requests.size() - first));
      std::vector<Completion> completions = parts_.policy->Generate(chunk, sampling);
      for (size_t i = 0; i < chunk.size(); ++i) {
        RoundRecord& round = slots[first + i].round;
        round.completion_ids = std::move(completions[i].ids);
        round.suggestion = std::move(completions[i].text);
        round.truncated = completions[i].finish_reason == KGRPO_FINISH_LENGTH;
      }
    }
  }

  // Has the coder write all kernels and judges them. After a stop, only the rounds that have landed have an outcome.
  void Play(std::deque<Slot>& slots) {
    std::vector<Slot*> all(slots.size());
    std::ranges::transform(slots, all.begin(), [](Slot& slot) { return &slot; });
    if (SendAndAwait(all, &RoundsInFlight::Implement) && plan_.screen != nullptr) EvaluatePromising(slots);
  }

  // Sends the rounds and waits; finishes those that land with an outcome. Returns false after a stop, and where the
  // evaluator's own limit left rounds unevaluated.
  bool SendAndAwait(const std::vector<Slot*>& slots, void (RoundsInFlight::*send)(Slot&)) {
    RolloutRequest request;
    request.purpose = Purpose::kHeldout;
    request.step = result_.waves;
    // After one evaluation failures are chance.
    request.most_faults = result_.evaluations > 0 ? 0 : std::min<size_t>(kMostFaults, slots.size());
    request.under_way = plan_.under_way;
    if (send == &RoundsInFlight::Implement) request.screen = plan_.screen;
    PipelineParts& parts = parts_;
    const std::function<bool()> user = parts.cancelled;
    parts.cancelled = [this, &user] { return user() || watch_.seconds() >= plan_.seconds; };
    RoundsInFlight flight(config_, parts_, pool_, request);
    try {
      for (Slot* slot : slots) (flight.*send)(*slot);
      for (size_t under_way = slots.size(); under_way > 0;) {
        const std::vector<Slot*> landed = flight.Landed();
        under_way -= landed.size();
        for (Slot* slot : landed) {
          if (slot->round.evaluation) slot->round.failure.reset();  // the reward's: the search looks at times alone
          if (slot->round.evaluation || slot->round.failure || !slot->screening) slot->trajectory.Finish(slot->round);
        }
      }
      parts.cancelled = user;
    } catch (const Error& error) {
      flight.Abandon();
      parts.cancelled = user;
      if (error.code() == KGRPO_ERROR_CANCELLED) return false;
      // The results so far were paid for: keep them.
      if (error.code() != KGRPO_ERROR_BUDGET) throw;
      const bool coding = send == &RoundsInFlight::Implement;
      result_.ended = coding ? "the coder's own limit" : "the evaluator's own limit";
      return coding;
    } catch (...) {
      flight.Abandon();
      parts.cancelled = user;
      throw;
    }
    return true;
  }

  // Evaluates the screened kernels of a wave that may enter the beam, plan_.beam at a time. Ends the rounds of the
  // others without an evaluation.
  void EvaluatePromising(std::deque<Slot>& slots) {
    Screen& screen = *plan_.screen;
    std::vector<Slot*> waiting;
    std::set<std::string> rivals;  // for the beam
    for (Slot& slot : slots) {
      rivals.insert(slot.round.code_b);
      if (slot.screening) waiting.push_back(&slot);
    }
    // A kernel that was evaluated before keeps that evaluation: another one would only take time.
    const auto take_known = [&](Slot* slot) {
      const Evaluation* known = screen.Measured(slot->round.answer.source);
      if (known == nullptr) return false;
      slot->round.evaluation = *known;
      slot->trajectory.Finish(slot->round);  // without a score: the search looks at times alone
      rivals.insert(slot->round.answer.source);
      return true;
    };
    for (uint64_t left = plan_.evaluations - result_.evaluations;;) {
      std::erase_if(waiting, take_known);
      std::vector<Screen::Kernel> kernels(waiting.size());
      std::ranges::transform(waiting, kernels.begin(), [](const Slot* slot) -> Screen::Kernel {
        return {slot->round.answer.source, slot->round.code_b};
      });
      const std::vector<size_t> promising = screen.Promising(kernels, rivals, plan_.beam);
      std::vector<Slot*> next(promising.size());
      std::ranges::transform(promising, next.begin(), [&](size_t i) { return waiting[i]; });
      if (next.empty()) break;
      if (left == 0) {
        // The limit on evaluations stops these kernels, not the screen: their rounds have no outcome.
        std::set<std::string> left_over;
        for (const Slot* slot : next) left_over.insert(slot->round.answer.source);
        std::erase_if(waiting, [&](const Slot* slot) { return left_over.contains(slot->round.answer.source); });
        break;
      }
      next.resize(std::min({next.size(), plan_.beam, left}));
      if (!SendAndAwait(next, &RoundsInFlight::Evaluate)) return;
      for (Slot* slot : next) {
        std::erase(waiting, slot);
        if (!slot->round.evaluation) continue;  // the evaluator failed
        --left;
        screen.Learn(slot->round.answer.source, slot->round.code_b, *slot->round.evaluation);
        rivals.insert(slot->round.answer.source);
      }
    }
    for (Slot* slot : waiting) slot->trajectory.Finish(slot->round);
  }

  void Count(const Slot& slot) {
    const RoundRecord& round = slot.round;
    const TrajectoryRecord& record = slot.trajectory.record();
    result_.cost += round.answer.cost;
    // The round did not land: the search was stopped.
    if (!record.failed_round && record.rounds_done.size() == round.round) return;
    log_.Add(record, round, result_.waves - 1, 0, from_list_, slot.screening, plan_.screen);
    if (untried_) untried_->Add(round, slot.trajectory);
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
  PromptTemplate system_, user_;
  std::vector<std::string> known_suggestions_;
  Trajectory start_;
  std::optional<Untried> untried_;  // of a policy
  bool from_list_ = false;          // the policy suggests nothing new
  Stopwatch watch_;
  SearchResult result_;
  CandidateLog log_;  // writes to result_
};

}  // namespace

SearchResult Search(const PipelineConfig& config, PipelineParts& parts, const OpenProblem& problem,
                    const std::string& start, const Evaluation& start_evaluation, WorkerPool& pool,
                    const SearchPlan& plan, const std::function<void(const SearchCandidate&)>& tell) {
  if (plan.beam == 0 || plan.samples == 0 || plan.evaluations == 0)
    throw Error(KGRPO_ERROR_INVALID, "beam, samples and evaluations must be at least 1");
  if (!start_evaluation.correct)
    throw Error(KGRPO_ERROR_INVALID, "the kernel to begin with is not correct (" + start_evaluation.verdict +
                                         "): " + start_evaluation.diagnosis);
  if (plan.suggester.kind == Suggester::Kind::kPolicy && parts.policy == nullptr)
    throw Error(KGRPO_ERROR_INVALID, "this search needs a policy, and the pipeline has none");
  if (plan.suggester.kind == Suggester::Kind::kUniform && parts.coder->Suggestions().empty())
    throw Error(KGRPO_ERROR_UNSUPPORTED,
                "this coder has no list of suggestions (it takes any text), so they cannot be drawn uniformly from it");
  PipelineConfig own = config;
  own.loop.advance = Advance::kCorrect;  // the search never continues from an incorrect kernel
  own.loop.fresh_inputs = false;         // kernels are compared on the same inputs
  return Searching(own, parts, problem, start, start_evaluation, pool, plan, tell).Run();
}

}  // namespace kgrpo
