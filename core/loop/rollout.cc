#include "loop/rollout.h"

#include "loop/stopwatch.h"
#include "loop/trajectory.h"
#include "random/keyed.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <utility>

namespace kgrpo {
namespace {

// What a call took on the calling thread: the work, and the waiting for a device.
class CallTime {
 public:
  explicit CallTime(const PipelineParts& parts) : parts_(parts), waited_before_(parts.seconds_waited()) {}
  double waited() const { return parts_.seconds_waited() - waited_before_; }
  double worked() const { return watch_.seconds() - waited(); }

 private:
  const PipelineParts& parts_;
  double waited_before_;
  Stopwatch watch_;
};

}  // namespace

// One Collect. The loop's thread owns trajectories and cohorts; a slot in flight belongs to whoever works on it (the
// coder's callback, then a worker), and comes back under the mutex.
class Rollout::Session {
 public:
  Session(Rollout& rollout, const RolloutRequest& request) : rollout_(rollout), request_(request) {
    for (size_t i = 0; i < request.assignments.size(); ++i) {
      const Assignment& assignment = request.assignments[i];
      slots_.emplace_back(
          Trajectory(i, assignment.problem, rollout.problems_[assignment.problem], rollout.config_.loop));
    }
    const bool shuffled = ShufflePrompts();
    const size_t batch = rollout.config_.loop.generation_batch;
    const size_t size = batch == 0 || shuffled ? slots_.size() : batch;
    for (size_t first = 0; first < slots_.size(); first += size) {
      cohorts_.push_back({first, std::min(first + size, slots_.size()), 0});
      ready_.push_back(cohorts_.size() - 1);
    }
    for (size_t c = 0; c < cohorts_.size(); ++c) {
      for (size_t i = cohorts_[c].first; i < cohorts_[c].last; ++i) slots_[i].cohort = c;
    }
  }

  RolloutResult Run() {
    const Stopwatch watch;
    try {
      for (size_t finished = 0; finished < cohorts_.size();) {
        const size_t cohort = NextReady();
        FinishRounds(cohorts_[cohort]);
        if (!BeginRounds(cohorts_[cohort])) ++finished;
      }
    } catch (...) {
      Abandon();
      throw;
    }
    RolloutResult result;
    result.seconds = watch.seconds();
    result.generate_seconds = generate_seconds_;
    result.wait_seconds = generate_wait_ + judge_wait_;
    for (Slot& slot : slots_) result.trajectories.push_back(slot.trajectory.Take());
    return result;
  }

 private:
  struct Slot {
    explicit Slot(Trajectory t) : trajectory(std::move(t)) {}
    Trajectory trajectory;
    size_t cohort = 0;
    RoundRecord round;       // the one in flight
    bool in_flight = false;  // touched by the loop's thread alone
    // What the coder's request borrows while it is in flight.
    EvaluationView current = Evaluation().ToC();
    kgrpo_coder_request request{};
  };
  struct Cohort {
    size_t first, last;  // slots
    size_t pending;      // of them, in flight; under the mutex
  };

  // ---- the loop's thread
  // ---------------------------------------------------------------------------------------------

  // Under the shuffle_prompts control notes whose prompts each trajectory gets. Then all of them are one cohort: they
  // play their rounds side by side, so that there is another one's prompt of the same round (of the last one that it
  // came to, where its coder failed and it was dropped).
  bool ShufflePrompts() {
    bool shuffled = false;
    for (size_t i = 0; i < slots_.size(); ++i) {
      const uint32_t other = request_.assignments[i].prompt_of;
      if (other == i) continue;
      shuffled = true;
      slots_[i].trajectory.SetPromptedAs(slots_[other].trajectory.problem().name);
    }
    return shuffled;
  }

  // Waits for a cohort of which nothing is in flight.
  size_t NextReady() {
    std::unique_lock lock(mutex_);
    while (ready_.empty()) {
      if (failure_) std::rethrow_exception(failure_);
      // The flag is set by a signal, which cannot notify: hence the pause.
      changed_.wait_for(lock, std::chrono::milliseconds(100));
      if (rollout_.parts_.cancelled()) throw Error(KGRPO_ERROR_CANCELLED, "stopped by the user");
    }
    if (failure_) std::rethrow_exception(failure_);
    if (rollout_.parts_.cancelled()) throw Error(KGRPO_ERROR_CANCELLED, "stopped by the user");
    const size_t cohort = ready_.front();
    ready_.pop_front();
    return cohort;
  }

  void FinishRounds(const Cohort& cohort) {
    for (size_t i = cohort.first; i < cohort.last; ++i) {
      Slot& slot = slots_[i];
      if (!std::exchange(slot.in_flight, false)) continue;
      slot.trajectory.Finish(std::move(slot.round), *rollout_.parts_.reward);
    }
  }

  // Suggestions for all trajectories of the cohort that have rounds left, and their kernels on the way. False: none
  // has.
  bool BeginRounds(Cohort& cohort) {
    std::vector<size_t> live;
    for (size_t i = cohort.first; i < cohort.last; ++i) {
      if (!slots_[i].trajectory.done()) live.push_back(i);
    }
    if (live.empty()) return false;
    {
      const std::lock_guard lock(mutex_);
      cohort.pending = live.size();
    }
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
        Implement(slot);
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
    const PromptState state = slots_[request_.assignments[i].prompt_of].trajectory.Prompt();
    std::string system = rollout_.system_.Render(state);
    if (!system.empty()) slot.round.messages.push_back({"system", std::move(system)});
    slot.round.messages.push_back({"user", rollout_.user_.Render(state)});
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
      Implement(slot);
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

  // Sends the slot's suggestion to the coder.
  void Implement(Slot& slot) {
    slot.in_flight = true;
    if (const RoundRecord* recorded = Recorded(slot)) {
      slot.round.answer = recorded->answer;
      slot.round.evaluation = recorded->evaluation;
      slot.round.evaluation_seed = recorded->evaluation_seed;
      slot.round.evaluate_seconds = recorded->evaluate_seconds;
      slot.round.unchanged = recorded->unchanged;
      Done(slot);
      return;
    }
    const Trajectory& trajectory = slot.trajectory;
    slot.current = trajectory.current().ToC();
    slot.request = {};
    slot.request.struct_size = sizeof(slot.request);
    slot.request.problem = &trajectory.problem().problem.info();
    slot.request.code_a = Str(slot.round.code_a);
    slot.request.code_b = Str(slot.round.code_b);
    slot.request.last_suggestion = Str(trajectory.last_suggestion());
    slot.request.suggestion = Str(slot.round.suggestion);
    slot.request.current = slot.current.c();
    slot.request.seed = Keyed(
        rollout_.config_.seed, "coder",
        {static_cast<uint64_t>(request_.purpose), request_.step, trajectory.record().trajectory, slot.round.round}, 0);
    {
      const std::lock_guard lock(mutex_);
      ++in_flight_;
    }
    try {
      rollout_.parts_.coder->Implement(
          slot.request, [this, &slot](std::optional<CoderAnswer> answer, const std::exception_ptr& error) {
            if (error) return Fail(error);
            slot.round.answer = *std::move(answer);
            Judge(slot);
          });
    } catch (...) {
      Fail(std::current_exception());  // nothing was accepted: this one is not in flight any more
      throw;
    }
  }

  // The recorded round that this one repeats, if there is one: same place, same kernel, same words.
  const RoundRecord* Recorded(const Slot& slot) const {
    const uint64_t number = slot.trajectory.record().trajectory;
    if (number >= request_.recorded.size()) return nullptr;
    const TrajectoryRecord& trajectory = request_.recorded[number];
    if (trajectory.problem_name != slot.trajectory.problem().name) return nullptr;
    for (const RoundRecord& round : trajectory.rounds_done) {
      if (round.round != slot.round.round) continue;
      const bool same = round.suggestion == slot.round.suggestion && round.code_a == slot.round.code_a &&
                        round.code_b == slot.round.code_b && round.completion_ids == slot.round.completion_ids;
      return same ? &round : nullptr;
    }
    return nullptr;
  }

  // After an error: nothing new starts, and what is in flight is waited for.
  void Abandon() {
    {
      const std::lock_guard lock(mutex_);
      abandoned_ = true;
      if (in_flight_ == 0) return;
    }
    try {
      rollout_.parts_.coder->Cancel();
    } catch (...) {
      // The first failure is the one to tell; this one only means that the answers take their time.
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return in_flight_ == 0; });
  }

  // ---- any thread
  // ----------------------------------------------------------------------------------------------------

  void Judge(Slot& slot) {
    RoundRecord& round = slot.round;
    if (round.answer.outcome != KGRPO_CODER_OK) return Landed(slot);
    const LoopConfig& loop = rollout_.config_.loop;
    round.unchanged = round.answer.source == round.code_b;
    const uint64_t number = slot.trajectory.record().trajectory;
    const OpenProblem& problem = slot.trajectory.problem();
    round.evaluation_seed =
        loop.fresh_inputs ? Keyed(rollout_.config_.seed, "inputs/" + problem.name,
                                  {static_cast<uint64_t>(request_.purpose), request_.step, number, round.round}, 0)
                          : Keyed(rollout_.config_.seed, "inputs/" + problem.name, {}, 0);
    if (round.unchanged && !loop.fresh_inputs) {
      round.evaluation = slot.trajectory.current();
      return Landed(slot);
    }
    rollout_.pool_.Submit([this, &slot] {
      try {
        bool abandoned;
        {
          const std::lock_guard lock(mutex_);
          abandoned = abandoned_ || failure_ != nullptr;
        }
        if (!abandoned) {
          const CallTime time(rollout_.parts_);
          slot.round.evaluation = rollout_.parts_.evaluator->Evaluate(
              slot.trajectory.problem().problem, slot.round.answer.source, slot.round.evaluation_seed);
          slot.round.evaluate_seconds = time.worked();
          const std::lock_guard lock(mutex_);
          judge_wait_ += time.waited();
        }
        Landed(slot);
      } catch (...) {
        Fail(std::current_exception());
      }
    });
  }

  // The slot's round has its answer and evaluation, and is the loop thread's again.
  void Landed(Slot& slot) {
    const std::lock_guard lock(mutex_);
    --in_flight_;
    OneLess(slot);
    changed_.notify_one();  // under the lock: this object may be gone as soon as it is released
  }

  void Done(Slot& slot) {
    const std::lock_guard lock(mutex_);
    OneLess(slot);
  }

  void OneLess(const Slot& slot) {
    if (--cohorts_[slot.cohort].pending == 0) ready_.push_back(slot.cohort);
  }

  void Fail(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    --in_flight_;
    if (!failure_) failure_ = std::move(error);
    changed_.notify_one();
  }

  Rollout& rollout_;
  const RolloutRequest& request_;
  std::deque<Slot> slots_;  // a deque: what is in flight stays where it is
  std::vector<Cohort> cohorts_;
  double generate_seconds_ = 0, generate_wait_ = 0;

  std::mutex mutex_;  // guards what follows, and Cohort::pending
  std::condition_variable changed_;
  std::deque<size_t> ready_;  // cohorts whose turn it is, first come first served
  size_t in_flight_ = 0;      // coder requests and evaluations
  bool abandoned_ = false;
  double judge_wait_ = 0;       // seconds
  std::exception_ptr failure_;  // the first
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
