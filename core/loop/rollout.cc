#include "loop/rollout.h"

#include "base/keyed.h"
#include "loop/prompter.h"
#include "loop/rounds_in_flight.h"
#include "loop/wire.h"
#include "plugin/parts.h"

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

namespace {

void CopySuggestion(const RoundRecord& from, RoundRecord* to) {
  to->round = from.round;
  to->prompt_ids = from.prompt_ids;
  to->completion_ids = from.completion_ids;
  to->logprobs = from.logprobs;
  to->truncated = from.truncated;
  to->suggestion = from.suggestion;
}

}  // namespace

class Rollout::Cohort {
 public:
  using Slot = RoundsInFlight::Slot;

  // Makes the request's trajectories from `begin` up to `end`, which is excluded.
  Cohort(Rollout& rollout, const RolloutRequest& request, std::shared_ptr<RoundsInFlight> flight, size_t begin,
         size_t end)
      : rollout_(rollout),
        request_(request),
        begin_(begin),
        rounds_ahead_(RoundsAhead(rollout.config_.loop)),
        begun_ahead_(request.staleness > 0 || !request.begun.empty()),
        staleness_(request.staleness),
        flight_(std::move(flight)) {
    for (size_t i = begin; i < end; ++i) {
      const uint32_t problem = request.assignments[i].problem;
      slots_.emplace_back(Trajectory(i, problem, rollout.problems_[problem], rollout.config_.loop), request);
    }
    for (size_t i = begin; i < end; ++i) {
      const uint32_t other = request.assignments[i].prompt_of;
      if (other == i) continue;
      Of(i).SetPromptedAs(Of(other).problem().name);
      lock_step_ = true;
    }
    for (Slot& slot : slots_) ready_.push_back(&slot);
  }
  ~Cohort() {
    if (under_way_ > 0) flight_->Abandon();
  }
  Cohort(const Cohort&) = delete;
  Cohort& operator=(const Cohort&) = delete;

  const std::shared_ptr<RoundsInFlight>& flight() const { return flight_; }
  const RolloutRequest& request() const { return request_; }
  bool over() const { return under_way_ == 0 && ready_.empty(); }
  // True if each trajectory has begun the rounds that it may begin ahead.
  bool waits() const {
    return std::ranges::none_of(ready_, [this](const Slot* slot) { return MayBegin(*slot); }) &&
           std::ranges::all_of(slots_, [this](const Slot& slot) {
             return slot.trajectory.done() || slot.trajectory.round() + 1 >= rounds_ahead_;
           });
  }

  // From here on the policy is the one that the step begins with, and what was begun ahead takes the step's time.
  void SetFresh() {
    if (staleness_ == 0) return;
    staleness_ = 0;
    watch_ = Stopwatch();
    waited_before_ = rollout_.parts_.all_seconds_waited();
  }

  // Starts the next round of each trajectory that may begin it.
  void BeginRounds() {
    std::erase_if(ready_, [](const Slot* slot) { return slot->trajectory.done(); });
    if (lock_step_ && under_way_ > 0) return;
    const auto waiting =
        std::stable_partition(ready_.begin(), ready_.end(), [this](const Slot* slot) { return MayBegin(*slot); });
    std::vector<Slot*> asking;
    std::vector<Slot*> beginning(ready_.begin(), waiting);
    ready_.erase(ready_.begin(), waiting);
    under_way_ += beginning.size();
    for (Slot* slot : beginning) BeginRound(*slot);
    for (Slot* slot : beginning) {
      if (request_.suggester.kind != Suggester::Kind::kPolicy) {
        Give(*slot);
      } else if (TakeBegun(slot->round, slot->trajectory.record())) {
        flight_->Implement(*slot);
      } else {
        slot->round.staleness = staleness_;
        asking.push_back(slot);
      }
    }
    if (request_.suggester.kind == Suggester::Kind::kPolicy) flight_->Suggest(asking);
  }

  // Takes those of the landed slots that are this cohort's.
  void Land(const std::vector<Slot*>& landed) {
    for (Slot* slot : landed) {
      if (&slot->rollout != &request_) continue;
      --under_way_;
      slot->trajectory.Finish(std::move(slot->round));
      ready_.push_back(slot);
      if (slot->trajectory.done()) ++done_;
    }
    if (request_.progress) request_.progress(done_, slots_.size());
  }

  RolloutResult Take() {
    if (const std::string shortened = prompter_.Shortened(); !shortened.empty())
      spdlog::info("step {}, {}: {}", request_.step, PurposeName(request_.purpose), shortened);
    RolloutResult result;
    given_ = true;
    // BegunAhead may be asked for a copy until the step is recorded.
    for (Slot& slot : slots_)
      result.trajectories.push_back(begun_ahead_ ? slot.trajectory.record() : slot.trajectory.Take());
    result.seconds = watch_.seconds();
    result.generate_seconds = flight_->TakeGenerateSeconds();
    result.wait_seconds = rollout_.parts_.all_seconds_waited() - waited_before_;
    return result;
  }

  // Hands RolloutRequest::unfinished what there is, once, and not after Take. Call while nothing is in flight.
  void GiveUnfinished() {
    if (std::exchange(given_, true) || !request_.unfinished) return;
    std::vector<TrajectoryRecord> all;
    for (const Slot& slot : slots_) {
      TrajectoryRecord& begun = all.emplace_back(slot.trajectory.record());
      if (!begun.failed_round && slot.round.round == begun.rounds_done.size()) begun.failed_round = slot.round;
      if (!begun.failed_round) continue;
      // The stop may have caused the failure: the part is asked again.
      begun.failed_round->failure.reset();
      const CoderAnswer& answer = begun.failed_round->answer;
      const bool answered = answer.attempts > 0 || !answer.source.empty();
      if (!answered || answer.outcome == KGRPO_CODER_FAILED) begun.failed_round.reset();
    }
    request_.unfinished(all);
  }

  std::vector<TrajectoryRecord> BegunAhead() const {
    std::vector<TrajectoryRecord> all;
    if (!begun_ahead_) return all;
    for (const Slot& slot : slots_) {
      TrajectoryRecord& begun = all.emplace_back(slot.trajectory.record());
      std::erase_if(begun.rounds_done, [this](const RoundRecord& round) { return round.round >= rounds_ahead_; });
      if (begun.failed_round && begun.failed_round->round >= rounds_ahead_) {
        begun.failed_round.reset();
        begun.dropped.clear();
      }
      if (begun.failed_round || begun.rounds_done.size() == rounds_ahead_) continue;
      CopySuggestion(slot.round, &begun.failed_round.emplace());  // the rest belongs to another thread
    }
    return all;
  }

 private:
  Trajectory& Of(size_t trajectory) { return slots_.at(trajectory - begin_).trajectory; }

  bool MayBegin(const Slot& slot) const { return staleness_ == 0 || slot.trajectory.round() < rounds_ahead_; }

  // Sets the suggestion of a round that an earlier attempt began ahead. Returns false if there is none for this prompt.
  bool TakeBegun(RoundRecord& round, const TrajectoryRecord& trajectory) const {
    for (const TrajectoryRecord& begun : request_.begun) {
      if (begun.trajectory != trajectory.trajectory || begun.problem_name != trajectory.problem_name) continue;
      const RoundRecord* written = round.round < begun.rounds_done.size() ? &begun.rounds_done[round.round]
                                   : begun.failed_round                   ? &*begun.failed_round
                                                                          : nullptr;
      if (written == nullptr || written->round != round.round || written->prompt_ids != round.prompt_ids) return false;
      CopySuggestion(*written, &round);
      round.staleness = 1;
      return true;
    }
    return false;
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
    flight_->Implement(slot);
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
  const uint32_t rounds_ahead_;
  const bool begun_ahead_;  // by this process or by an earlier one
  uint32_t staleness_;      // staleness of the suggestions that are asked for now
  Stopwatch watch_;
  double waited_before_ = rollout_.parts_.all_seconds_waited();
  Prompter prompter_{rollout_.config_, rollout_.parts_.policy.get()};
  size_t done_ = 0;           // trajectories
  std::deque<Slot> slots_;    // a deque: addresses of slots in flight stay valid
  std::vector<Slot*> ready_;  // for their next round
  size_t under_way_ = 0;      // rounds begun and not landed
  bool given_ = false;        // the trajectories, by Take or to RolloutRequest::unfinished
  // Under the shuffle_prompts control a round begins when all trajectories have ended theirs, so that the other
  // trajectory's prompt is of the same round. For a dropped trajectory it is of the last round that it reached.
  bool lock_step_ = false;
  const std::shared_ptr<RoundsInFlight> flight_;
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
  if (parts_.ranks == nullptr) return Finish(*Begin(request));
  parts_.ranks->Order(CollectOrder(request));
  return CollectShare(request, *parts_.ranks);
}

std::shared_ptr<Rollout::Cohort> Rollout::Begin(const RolloutRequest& request, Cohort* beside, size_t begin,
                                                size_t end) {
  if (beside != nullptr) {  // its requests go first
    beside->SetFresh();
    beside->BeginRounds();
  }
  auto flight =
      beside != nullptr ? beside->flight() : std::make_shared<RoundsInFlight>(config_, parts_, pool_, request);
  auto cohort =
      std::make_shared<Cohort>(*this, request, std::move(flight), begin, std::min(end, request.assignments.size()));
  cohort->BeginRounds();
  return cohort;
}

RolloutResult Rollout::Finish(Cohort& cohort, Cohort* ahead) {
  RoundsInFlight& flight = *cohort.flight();
  try {
    cohort.SetFresh();
    for (;;) {
      cohort.BeginRounds();
      if (ahead != nullptr) ahead->BeginRounds();
      if (cohort.over() && (ahead == nullptr || ahead->waits())) break;
      const auto landed = flight.Landed(cohort.request().under_way);
      cohort.Land(landed);
      if (ahead != nullptr) ahead->Land(landed);
    }
    if (ahead != nullptr) ahead->Land(flight.Landed(cohort.request().under_way, /*until_written=*/true));
  } catch (...) {
    Abandon(cohort);
    if (ahead != nullptr) Abandon(*ahead);
    throw;
  }
  return cohort.Take();
}

void Rollout::Abandon(Cohort& cohort) {
  cohort.flight()->Abandon();
  cohort.GiveUnfinished();
}

std::vector<TrajectoryRecord> Rollout::BegunAhead(Cohort& cohort) {
  cohort.Land(cohort.flight()->TakeLanded());
  return cohort.BegunAhead();
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
      own = Finish(*Begin(request, nullptr, begin_of(ranks.rank()), begin_of(ranks.rank() + 1)));
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
