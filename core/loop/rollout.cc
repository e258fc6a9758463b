#include "loop/rollout.h"

#include "base/keyed.h"
#include "loop/prompter.h"
#include "loop/rounds_in_flight.h"
#include "loop/stopwatch.h"
#include "loop/wire.h"

#include <kgrpo/sdk/error.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

namespace kgrpo {

std::string UnderWayText(const RoundsUnderWay& rounds) {
  std::string text;
  const auto add = [&text](const char* where, size_t count) {
    if (count > 0) text += (text.empty() ? "with the " : ", ") + std::string(where) + " " + std::to_string(count);
  };
  add("policy", rounds.policy);
  add("coder", rounds.coder);
  add("evaluator", rounds.evaluator);
  return text;
}

void ShowUnderWay(Console* console, const std::string& what, RolloutRequest* request) {
  if (console == nullptr || !console->moves()) return;
  const auto done = std::make_shared<std::string>();
  request->progress = [done](size_t now, size_t total) {
    *done = std::to_string(now) + "/" + std::to_string(total) + " trajectories  ";
  };
  request->under_way = [=](const RoundsUnderWay& rounds) {
    console->UnderWay(what + "  " + *done + UnderWayText(rounds));
  };
}

void RequireSuggester(const Suggester& suggester, const PipelineParts& parts) {
  if (suggester.kind == Suggester::Kind::kPolicy && parts.policy == nullptr) {
    throw Error(KGRPO_ERROR_INVALID, "these suggestions need a policy, and the pipeline has none");
  }
  if (suggester.kind == Suggester::Kind::kUniform && parts.coder->Suggestions().empty()) {
    throw Error(KGRPO_ERROR_UNSUPPORTED,
                "this coder has no list of suggestions (it takes any text), so they cannot be drawn uniformly from it");
  }
  if (suggester.kind == Suggester::Kind::kFixed && suggester.sequence.empty()) {
    throw Error(KGRPO_ERROR_INVALID, "a fixed sequence of suggestions is empty");
  }
}

// The state of one call of Collect.
class Rollout::Session {
 public:
  // Collects the request's trajectories from `begin` up to `end`, which is excluded.
  Session(Rollout& rollout, const RolloutRequest& request, size_t begin, size_t end)
      : rollout_(rollout),
        request_(request),
        begin_(begin),
        flight_(rollout.config_, rollout.parts_, rollout.pool_, request) {
    for (size_t i = begin; i < end; ++i) {
      const uint32_t problem = request.assignments[i].problem;
      slots_.emplace_back(Trajectory(i, problem, rollout.problems_[problem], rollout.config_.loop));
    }
    for (size_t i = begin; i < end; ++i) {
      const uint32_t other = request.assignments[i].prompt_of;
      if (other == i) continue;
      Of(i).SetPromptedAs(Of(other).problem().name);
      lock_step_ = true;
    }
  }

  RolloutResult Run() {
    const Stopwatch watch;
    const double waited_before = rollout_.parts_.all_seconds_waited();
    try {
      std::vector<Slot*> ready;
      for (Slot& slot : slots_) ready.push_back(&slot);
      for (size_t under_way = BeginRounds(ready); under_way > 0;) {
        std::vector<Slot*> landed = flight_.Landed();
        under_way -= landed.size();
        for (Slot* slot : landed) slot->trajectory.Finish(std::move(slot->round));
        TellProgress(landed);
        ready.insert(ready.end(), landed.begin(), landed.end());
        if (!lock_step_ || under_way == 0) under_way += BeginRounds(ready);
      }
    } catch (...) {
      flight_.Abandon();
      throw;
    }
    if (const std::string shortened = prompter_.Shortened(); !shortened.empty())
      spdlog::info("step {}, {}: {}", request_.step, PurposeName(request_.purpose), shortened);
    RolloutResult result;
    result.seconds = watch.seconds();
    result.generate_seconds = flight_.generate_seconds();
    result.wait_seconds = rollout_.parts_.all_seconds_waited() - waited_before;
    for (Slot& slot : slots_) result.trajectories.push_back(slot.trajectory.Take());
    return result;
  }

 private:
  using Slot = RoundsInFlight::Slot;

  void TellProgress(const std::vector<Slot*>& landed) {
    done_ += static_cast<size_t>(
        std::count_if(landed.begin(), landed.end(), [](const Slot* slot) { return slot->trajectory.done(); }));
    if (request_.progress) request_.progress(done_, slots_.size());
  }

  Trajectory& Of(size_t trajectory) { return slots_.at(trajectory - begin_).trajectory; }

  // Starts the next round of each slot that has rounds left, and empties the list. Returns the number of rounds
  // started.
  size_t BeginRounds(std::vector<Slot*>& ready) {
    std::erase_if(ready, [](const Slot* slot) { return slot->trajectory.done(); });
    for (Slot* slot : ready) BeginRound(*slot);
    if (request_.suggester.kind == Suggester::Kind::kPolicy) {
      flight_.Suggest(ready);
    } else {
      for (Slot* slot : ready) Give(*slot);
    }
    const size_t begun = ready.size();
    ready.clear();
    return begun;
  }

  void BeginRound(Slot& slot) {
    const Trajectory& trajectory = slot.trajectory;
    const bool encode = request_.suggester.kind == Suggester::Kind::kPolicy || request_.encode;
    prompter_.Begin(trajectory, Of(request_.assignments[trajectory.record().trajectory].prompt_of),
                    rollout_.parts_.metrics, encode, &slot.round);
    slot.suggestion_seed = Keyed(
        rollout_.config_.seed, "generate",
        {static_cast<uint64_t>(request_.purpose), request_.step, trajectory.record().trajectory, trajectory.round()},
        0);
  }

  // Gives the slot a suggestion that needs no policy, and sends it to the coder.
  void Give(Slot& slot) {
    slot.round.suggestion = GivenSuggestion(slot.trajectory);
    if (request_.encode) slot.round.completion_ids = rollout_.parts_.policy->EncodeCompletion(slot.round.suggestion);
    flight_.Implement(slot);
  }

  std::string GivenSuggestion(const Trajectory& trajectory) const {
    const Suggester& suggester = request_.suggester;
    if (suggester.kind == Suggester::Kind::kFixed) {
      return suggester.sequence[std::min<size_t>(trajectory.round(), suggester.sequence.size() - 1)];
    }
    const std::vector<std::string> unused = trajectory.Unused(rollout_.known_suggestions_);
    KeyedStream random(
        rollout_.config_.seed, "uniform suggestion",
        {static_cast<uint64_t>(request_.purpose), request_.step, trajectory.record().trajectory, trajectory.round()});
    return unused[random.Below(unused.size())];
  }

  Rollout& rollout_;
  const RolloutRequest& request_;
  const size_t begin_;
  Prompter prompter_{rollout_.config_, rollout_.parts_.policy.get()};
  size_t done_ = 0;         // trajectories
  std::deque<Slot> slots_;  // a deque: addresses of slots in flight stay valid
  // Under the shuffle_prompts control a round begins when all trajectories have ended theirs, so that the other
  // trajectory's prompt is of the same round. For a dropped trajectory it is of the last round that it reached.
  bool lock_step_ = false;
  RoundsInFlight flight_;
};

Rollout::Rollout(const PipelineConfig& config, PipelineParts& parts, const ProblemSet& problems, WorkerPool& pool)
    : config_(config),
      parts_(parts),
      problems_(problems),
      pool_(pool),
      known_suggestions_(parts.coder->Suggestions()) {}

RolloutResult Rollout::Collect(const RolloutRequest& request) {
  RequireSuggester(request.suggester, parts_);
  if (request.encode) RequireSuggester(Suggester(), parts_);
  if (parts_.ranks == nullptr) return Session(*this, request, 0, request.assignments.size()).Run();
  parts_.ranks->Order(CollectOrder(request));
  return CollectShare(request, *parts_.ranks);
}

// Shares are consecutive and do not split a group of trajectories_per_problem, because trajectories of a group share
// prompts.
RolloutResult Rollout::CollectShare(const RolloutRequest& request, Ranks& ranks) {
  const Stopwatch watch;
  const size_t together = config_.loop.trajectories_per_problem;
  const size_t groups = (request.assignments.size() + together - 1) / together;
  const auto begin_of = [&](uint32_t rank) {
    return std::min(groups * rank / ranks.size() * together, request.assignments.size());
  };
  RolloutResult own;
  const std::vector<std::string> shares = ranks.Together([&] {
    try {
      own = Session(*this, request, begin_of(ranks.rank()), begin_of(ranks.rank() + 1)).Run();
    } catch (const Error&) {
      ranks.TellFailing();  // so that the others stop paying for answers
      throw;
    }
    return ToBytes(TrajectoriesToJson(own.trajectories));
  });
  RolloutResult all;
  all.seconds = watch.seconds();
  all.generate_seconds = own.generate_seconds;
  all.wait_seconds = own.wait_seconds;
  for (const std::string& share : shares) {
    for (TrajectoryRecord& trajectory : TrajectoriesFromJson(FromBytes(share)))
      all.trajectories.push_back(std::move(trajectory));
  }
  return all;
}

}  // namespace kgrpo
