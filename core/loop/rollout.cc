#include "loop/rollout.h"

#include "loop/rounds_in_flight.h"
#include "loop/stopwatch.h"
#include "random/keyed.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <deque>
#include <utility>

namespace kgrpo {
namespace {

// How many trajectories generate together. Under the shuffle_prompts control all of them: they play their rounds side
// by side, so that there is another one's prompt of the same round (of the last one that it came to, where its coder
// failed and it was dropped).
size_t CohortSize(const LoopConfig& loop, const std::vector<Assignment>& assignments) {
  bool shuffled = false;
  for (size_t i = 0; i < assignments.size(); ++i) shuffled |= assignments[i].prompt_of != i;
  const size_t all = std::max<size_t>(1, assignments.size());
  return loop.generation_batch == 0 || shuffled ? all : loop.generation_batch;
}

}  // namespace

std::vector<ChatMessage> PromptMessages(const PromptTemplate& system, const PromptTemplate& user,
                                        const PromptState& state) {
  std::vector<ChatMessage> messages;
  std::string text = system.Render(state);
  if (!text.empty()) messages.push_back({"system", std::move(text)});
  messages.push_back({"user", user.Render(state)});
  return messages;
}

// One Collect: the cohorts take turns.
class Rollout::Session {
 public:
  Session(Rollout& rollout, const RolloutRequest& request)
      : rollout_(rollout),
        request_(request),
        cohort_size_(CohortSize(rollout.config_.loop, request.assignments)),
        cohorts_((request.assignments.size() + cohort_size_ - 1) / cohort_size_),
        flight_(rollout.config_, rollout.parts_, rollout.pool_, request, cohorts_) {
    for (size_t i = 0; i < request.assignments.size(); ++i) {
      const uint32_t problem = request.assignments[i].problem;
      slots_.emplace_back(Trajectory(i, problem, rollout.problems_[problem], rollout.config_.loop), i / cohort_size_);
    }
    for (size_t i = 0; i < slots_.size(); ++i) {
      const uint32_t other = request.assignments[i].prompt_of;
      if (other != i) slots_[i].trajectory.SetPromptedAs(slots_[other].trajectory.problem().name);
    }
  }

  RolloutResult Run() {
    const Stopwatch watch;
    try {
      for (size_t finished = 0; finished < cohorts_;) {
        const size_t cohort = flight_.NextReady();
        FinishRounds(cohort);
        if (!BeginRounds(cohort)) ++finished;
      }
    } catch (...) {
      flight_.Abandon();
      throw;
    }
    RolloutResult result;
    result.seconds = watch.seconds();
    result.generate_seconds = generate_seconds_;
    result.wait_seconds = generate_wait_ + flight_.judge_wait();
    for (Slot& slot : slots_) result.trajectories.push_back(slot.trajectory.Take());
    return result;
  }

 private:
  using Slot = RoundsInFlight::Slot;

  size_t FirstOf(size_t cohort) const { return cohort * cohort_size_; }
  size_t EndOf(size_t cohort) const { return std::min(FirstOf(cohort) + cohort_size_, slots_.size()); }

  void FinishRounds(size_t cohort) {
    for (size_t i = FirstOf(cohort); i < EndOf(cohort); ++i) {
      Slot& slot = slots_[i];
      if (!std::exchange(slot.in_flight, false)) continue;
      slot.trajectory.Finish(std::move(slot.round), *rollout_.parts_.reward);
    }
  }

  // Suggestions for all trajectories of the cohort that have rounds left, and their kernels on the way. False: none
  // has.
  bool BeginRounds(size_t cohort) {
    std::vector<size_t> live;
    for (size_t i = FirstOf(cohort); i < EndOf(cohort); ++i) {
      if (!slots_[i].trajectory.done()) live.push_back(i);
    }
    if (live.empty()) return false;
    flight_.Expect(cohort, live.size());
    for (const size_t i : live) BeginRound(i);
    if (request_.suggester.kind == Suggester::Kind::kPolicy) {
      Generate(live);
    } else {
      for (const size_t i : live) {
        Slot& slot = slots_[i];
        slot.round.suggestion = GivenSuggestion(slot.trajectory);
        if (request_.encode) {
          Policy& policy = *rollout_.parts_.policy;
          slot.round.completion_ids = policy.Encode(slot.round.suggestion);
          slot.round.completion_ids.push_back(policy.info().end_ids[0]);
        }
        flight_.Launch(slot);
      }
    }
    return true;
  }

  void BeginRound(size_t i) {
    Slot& slot = slots_[i];
    const Trajectory& trajectory = slot.trajectory;
    slot.round = RoundRecord();
    slot.round.round = trajectory.round();
    slot.round.code_a = trajectory.code_a();
    slot.round.code_b = trajectory.code_b();
    const PromptState state = slots_[request_.assignments[i].prompt_of].trajectory.Prompt(rollout_.parts_.metrics);
    slot.round.messages = PromptMessages(rollout_.system_, rollout_.user_, state);
    if (request_.suggester.kind == Suggester::Kind::kPolicy || request_.encode) {
      ChatOptions options;
      options.enable_thinking = rollout_.config_.prompt.enable_thinking;
      const CallTime time(rollout_.parts_);
      slot.round.prompt_ids = rollout_.parts_.policy->EncodeChat(slot.round.messages, options);
      generate_seconds_ += time.worked();
    }
  }

  void Generate(const std::vector<size_t>& live) {
    std::vector<kgrpo_generate_request> requests;
    for (const size_t i : live) {
      const RoundRecord& round = slots_[i].round;
      const uint64_t seed = Keyed(rollout_.config_.seed, "generate",
                                  {static_cast<uint64_t>(request_.purpose), request_.step, i, round.round}, 0);
      requests.push_back({round.prompt_ids.data(), round.prompt_ids.size(), seed});
    }
    const SamplingConfig& config = rollout_.config_.loop.sampling;
    kgrpo_sampling sampling{};
    sampling.struct_size = sizeof(sampling);
    sampling.max_new_tokens = config.max_new_tokens;
    sampling.temperature = config.temperature;
    sampling.top_k = config.top_k;
    sampling.top_p = config.top_p;
    sampling.min_p = config.min_p;

    const CallTime time(rollout_.parts_);
    size_t finished = 0;
    rollout_.parts_.policy->Generate(requests, sampling, [&](Completion completion) {
      Slot& slot = slots_[live.at(completion.request)];
      slot.round.completion_ids = std::move(completion.ids);
      slot.round.logprobs = std::move(completion.logprobs);
      slot.round.truncated = completion.finish_reason == KGRPO_FINISH_LENGTH;
      slot.round.suggestion = std::move(completion.text);
      ++finished;
      flight_.Launch(slot);
    });
    generate_seconds_ += time.worked();
    generate_wait_ += time.waited();
    if (finished != live.size()) {
      throw Error(
          rollout_.parts_.cancelled() ? KGRPO_ERROR_CANCELLED : KGRPO_ERROR_INTERNAL,
          "the policy finished " + std::to_string(finished) + " of " + std::to_string(live.size()) + " completions");
    }
  }

  std::string GivenSuggestion(const Trajectory& trajectory) const {
    const Suggester& suggester = request_.suggester;
    if (suggester.kind == Suggester::Kind::kFixed) {
      return suggester.sequence[std::min<size_t>(trajectory.round(), suggester.sequence.size() - 1)];
    }
    std::vector<std::string> unused;
    for (const std::string& suggestion : rollout_.known_suggestions_) {
      if (!trajectory.Suggested(suggestion)) unused.push_back(suggestion);
    }
    if (unused.empty()) unused = rollout_.known_suggestions_;
    KeyedStream random(
        rollout_.config_.seed, "uniform suggestion",
        {static_cast<uint64_t>(request_.purpose), request_.step, trajectory.record().trajectory, trajectory.round()});
    return unused[random.Below(unused.size())];
  }

  Rollout& rollout_;
  const RolloutRequest& request_;
  const size_t cohort_size_, cohorts_;
  std::deque<Slot> slots_;  // a deque: what is in flight stays where it is
  double generate_seconds_ = 0, generate_wait_ = 0;
  RoundsInFlight flight_;
};

Rollout::Rollout(const PipelineConfig& config, PipelineParts& parts, const ProblemSet& problems, WorkerPool& pool)
    : config_(config),
      parts_(parts),
      problems_(problems),
      pool_(pool),
      system_(config.prompt.system, "prompt.system"),
      user_(config.prompt.user, "prompt.user"),
      known_suggestions_(parts.coder->Suggestions()) {}

RolloutResult Rollout::Collect(const RolloutRequest& request) {
  const Suggester& suggester = request.suggester;
  if ((suggester.kind == Suggester::Kind::kPolicy || request.encode) && parts_.policy == nullptr) {
    throw Error(KGRPO_ERROR_INVALID, "these trajectories need a policy, and the pipeline has none");
  }
  if (suggester.kind == Suggester::Kind::kUniform && known_suggestions_.empty()) {
    throw Error(KGRPO_ERROR_UNSUPPORTED,
                "this coder has no list of suggestions (it takes any text), so they cannot be drawn uniformly from it");
  }
  if (suggester.kind == Suggester::Kind::kFixed && suggester.sequence.empty()) {
    throw Error(KGRPO_ERROR_INVALID, "a fixed sequence of suggestions is empty");
  }
  return Session(*this, request).Run();
}

}  // namespace kgrpo
