#include "loop/rounds_in_flight.h"

#include "base/keyed.h"
#include "loop/recorded_rounds.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

#include <algorithm>
#include <chrono>
#include <optional>

namespace kgrpo {

kgrpo_sampling SamplingOf(const SamplingConfig& config) {
  kgrpo_sampling sampling{};
  sampling.struct_size = sizeof(sampling);
  sampling.max_new_tokens = config.max_new_tokens;
  sampling.temperature = config.temperature;
  sampling.top_k = config.top_k;
  sampling.top_p = config.top_p;
  sampling.min_p = config.min_p;
  return sampling;
}

uint64_t SharedInputsSeed(uint64_t run_seed, const std::string& problem) {
  return Keyed(run_seed, "inputs/" + problem, {}, 0);
}

RoundsInFlight::RoundsInFlight(const PipelineConfig& config, PipelineParts& parts, WorkerPool& pool,
                               const RolloutRequest& request)
    : config_(config),
      parts_(parts),
      pool_(pool),
      purpose_(request.purpose),
      most_faults_(request.most_faults),
      sampling_(SamplingOf(config.loop.sampling)) {
  if (request.purpose == Purpose::kGreedy) sampling_.temperature = 0;
}

// ---- the loop's thread

void RoundsInFlight::Suggest(const std::vector<Slot*>& slots) {
  std::vector<Slot*> first;
  {
    const std::lock_guard lock(mutex_);
    in_flight_ += slots.size();
    waiting_.insert(waiting_.end(), slots.begin(), slots.end());
    const size_t most = config_.loop.generation_batch == 0 ? waiting_.size() + generating_
                                                           : static_cast<size_t>(config_.loop.generation_batch);
    if (generating_ == 0 && most > 0) generation_ = Stopwatch();
    while (!waiting_.empty() && generating_ < most) {
      first.push_back(waiting_.front());
      waiting_.pop_front();
      ++generating_;
    }
  }
  Submit(first);
}

void RoundsInFlight::Implement(Slot& slot) {
  {
    const std::lock_guard lock(mutex_);
    ++in_flight_;
  }
  SendToCoder(slot);
}

std::vector<RoundsInFlight::Slot*> RoundsInFlight::Landed(const UnderWay& under_way, bool until_written) {
  std::optional<PluginCall> generation;  // lets loop/hang.h find a policy that never answers
  size_t awaited = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    const bool policy_alone = generating_ > 0 && in_flight_ == generating_ + waiting_.size();
    if (!policy_alone || in_flight_ != awaited) generation.reset();
    if (policy_alone && !generation) generation.emplace(parts_.policy->plugin(), "generate");
    awaited = in_flight_;
    if (failure_) std::rethrow_exception(failure_);
    // The flag is set by a signal, which cannot notify: hence the pause below.
    if (parts_.cancelled()) throw Error(KGRPO_ERROR_CANCELLED, "stopped by the user");
    TellUnderWay(under_way, lock);
    if (until_written ? generating_ == 0 : !landed_.empty()) return std::exchange(landed_, {});
    changed_.wait_for(lock, std::chrono::milliseconds(100));
  }
}

std::vector<RoundsInFlight::Slot*> RoundsInFlight::TakeLanded() {
  const std::lock_guard lock(mutex_);
  return std::exchange(landed_, {});
}

// Called on the loop's thread with the lock held.
void RoundsInFlight::TellUnderWay(const UnderWay& under_way, std::unique_lock<std::mutex>& lock) {
  if (!under_way) return;
  const size_t policy = generating_ + waiting_.size();
  const RoundsUnderWay now = {policy, coding_, in_flight_ - policy - coding_};
  const auto time = std::chrono::steady_clock::now();
  if (now == told_ || time - told_at_ < std::chrono::milliseconds(100)) return;
  told_ = now;
  told_at_ = time;
  lock.unlock();
  under_way(now);
  lock.lock();
}

void RoundsInFlight::Abandon() {
  {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
    in_flight_ -= waiting_.size();
    waiting_.clear();
    if (in_flight_ == 0) return;
  }
  try {
    if (parts_.policy != nullptr) parts_.policy->Cancel();
    parts_.coder->Cancel();
  } catch (...) {
    // Keep the first failure; without Cancel the answers only take longer.
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return in_flight_ == 0; });
}

// ---- any thread

// Sends slots to the policy; generating_ already counts them.
void RoundsInFlight::Submit(const std::vector<Slot*>& slots) {
  if (slots.empty()) return;
  std::vector<Policy::GenerateRequest> requests;
  requests.reserve(slots.size());
  for (const Slot* slot : slots) requests.push_back({slot->round.prompt_ids, slot->suggestion_seed});
  try {
    parts_.policy->Submit(
        requests, sampling_,
        [this, slots](size_t request, std::optional<Completion> completion, std::exception_ptr error) {
          Slot& slot = *slots[request];
          // Before the request counts as ended: once the policy has none, each round has its suggestion.
          if (completion) {
            slot.round.completion_ids = std::move(completion->ids);
            slot.round.logprobs = std::move(completion->logprobs);
            slot.round.truncated = completion->finish_reason == KGRPO_FINISH_LENGTH;
            slot.round.suggestion = std::move(completion->text);
          }
          GenerationEnded();
          if (error) return Fail(std::move(error));
          SendToCoder(slot);
        });
  } catch (...) {  // nothing was accepted
    for (size_t i = 0; i < slots.size(); ++i) {
      GenerationEnded();
      Fail(std::current_exception());
    }
  }
}

// Frees a place in the policy, and submits the next waiting slot.
void RoundsInFlight::GenerationEnded() {
  std::vector<Slot*> next;
  {
    const std::lock_guard lock(mutex_);
    --generating_;
    if (!waiting_.empty() && !failure_ && !abandoned_) {
      next.push_back(waiting_.front());
      waiting_.pop_front();
      ++generating_;
    }
    if (generating_ == 0) {
      generate_seconds_ += generation_.seconds();
      changed_.notify_one();
    }
  }
  Submit(next);
}

void RoundsInFlight::SendToCoder(Slot& slot) {
  if (const RoundRecord* recorded = Recorded(slot)) {
    slot.round.answer = recorded->answer;
    slot.round.evaluation = recorded->evaluation;
    slot.round.evaluation_seed = recorded->evaluation_seed;
    slot.round.evaluate_seconds = recorded->evaluate_seconds;
    slot.round.unchanged = recorded->unchanged;
    // A reward that failed is asked again: it is pure, and may have been corrected.
    if (recorded->failure && recorded->failure->part == RoundPart::kEvaluator) slot.round.failure = recorded->failure;
    const bool judged = slot.round.evaluation || slot.round.failure || slot.round.answer.outcome != KGRPO_CODER_OK;
    return judged ? Score(slot) : Judge(slot);
  }
  if (StopsEarly()) return Land(slot);
  if (Replays() && config_.loop.replay.only) {
    slot.round.answer.outcome = KGRPO_CODER_REFUSED;
    slot.round.answer.message = "no run of loop.replay recorded this suggestion for this kernel";
    return Score(slot);
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
  slot.request.seed =
      Keyed(config_.seed, "coder",
            {static_cast<uint64_t>(purpose_), slot.rollout.step, trajectory.record().trajectory, slot.round.round}, 0);
  slot.request.truncated = slot.round.truncated ? 1 : 0;
  {
    const std::lock_guard lock(mutex_);
    ++coding_;
  }
  const auto answered = [this] {
    const std::lock_guard lock(mutex_);
    --coding_;
  };
  try {
    parts_.coder->Implement(
        slot.request, [this, &slot, answered](std::optional<CoderAnswer> answer, const std::exception_ptr& error) {
          answered();
          if (error) return Fail(error);
          slot.round.answer = *std::move(answer);
          slot.round.answer.text.clear();  // it may be large, and the loop does not use it
          try {
            CheckAnswer(RoundPart::kCoder, slot.round);
          } catch (...) {
            return Fail(std::current_exception());
          }
          Judge(slot);
        });
  } catch (...) {
    answered();
    Fail(std::current_exception());  // nothing was accepted
  }
}

// True if rounds may be answered from the runs of loop.replay.
bool RoundsInFlight::Replays() const {
  return parts_.replay != nullptr && (purpose_ == Purpose::kTrain || purpose_ == Purpose::kDemonstration);
}

// Returns the recorded round that this one repeats: one of an earlier attempt at the step with the same problem, round
// number, kernels, suggestion and tokens; else one of loop.replay. Null: none.
const RoundRecord* RoundsInFlight::Recorded(const Slot& slot) const {
  const std::string& problem = slot.trajectory.problem().name;
  const auto repeated = [&slot](const RoundRecord& round) {
    return round.round == slot.round.round && round.suggestion == slot.round.suggestion &&
           round.code_a == slot.round.code_a && round.code_b == slot.round.code_b &&
           round.completion_ids == slot.round.completion_ids;
  };
  for (const TrajectoryRecord& trajectory : slot.rollout.recorded) {
    if (trajectory.trajectory != slot.trajectory.record().trajectory || trajectory.problem_name != problem) continue;
    const auto found = std::ranges::find_if(trajectory.rounds_done, repeated);
    if (found != trajectory.rounds_done.end()) return &*found;
    if (trajectory.failed_round && repeated(*trajectory.failed_round)) return &*trajectory.failed_round;
  }
  return Replays() ? parts_.replay->Find(problem, slot.round.code_b, slot.round.suggestion) : nullptr;
}

// Call after each answer of a part, with the round that has it or its failure.
void RoundsInFlight::CheckAnswer(RoundPart part, const RoundRecord& round) {
  if (most_faults_ == 0) return;
  const std::optional<RoundFault> fault = FaultOf(round);
  const auto i = static_cast<size_t>(part);
  const std::lock_guard lock(mutex_);
  if (fault && fault->part == part)
    faults_[i].Count(fault->kind, fault->message);
  else
    any_use_[i] = true;
  if (!any_use_[i] && faults_[i].count() >= most_faults_) faults_[i].Throw("first");
}

// Calls the evaluator or the reward. A failure of this round alone becomes the round's; throws the others.
template <typename Call>
void RoundsInFlight::Ask(RoundPart part, RoundRecord& round, Call call) {
  try {
    call();
  } catch (const Error& error) {
    RequireFailsOneRound(part, error, parts_.cancelled());
    round.failure = {part, (error.code() == KGRPO_ERROR_NO_SCORE ? std::string(kNoScore) : "") + error.what()};
  }
  CheckAnswer(part, round);
}

void RoundsInFlight::AskReward(Slot& slot) {
  if (slot.trajectory.Drops(slot.round)) return;
  Ask(RoundPart::kReward, slot.round, [&] { slot.trajectory.Score(slot.round, *parts_.reward); });
}

namespace {

// A kernel that its coder doubts, and that is wrong, is an answer without a kernel: what was left out is not the
// suggestion's failure.
void BlameCoder(RoundRecord* round) {
  if (round->answer.message.empty() || !round->evaluation || round->evaluation->correct) return;
  round->answer.outcome = KGRPO_CODER_NO_CODE;
  round->answer.message = "the kernel is " + round->evaluation->verdict +
                          ", and reads as if parts of it were left out: " + round->answer.message;
  round->answer.source.clear();
  round->evaluation.reset();
}

}  // namespace

void RoundsInFlight::Judge(Slot& slot) {
  RoundRecord& round = slot.round;
  if (round.answer.outcome != KGRPO_CODER_OK) return Score(slot);
  round.unchanged = round.answer.source == round.code_b;
  round.evaluation_seed = SharedInputsSeed(config_.seed, slot.trajectory.problem().name);
  if (round.unchanged) {
    round.evaluation = slot.trajectory.current();
    return Score(slot);
  }
  OnWorker(slot, [this, &slot] {
    Ask(RoundPart::kEvaluator, slot.round, [&] {
      const CallTime time(parts_);
      slot.round.evaluation = parts_.evaluator->Evaluate(slot.trajectory.problem().problem, slot.round.answer.source,
                                                         slot.round.evaluation_seed);
      slot.round.evaluate_seconds = time.worked();
    });
    BlameCoder(&slot.round);
    AskReward(slot);
  });
}

void RoundsInFlight::Score(Slot& slot) {
  OnWorker(slot, [this, &slot] { AskReward(slot); });
}

// Runs the last part of a round on the pool, because it may block.
template <typename Work>
void RoundsInFlight::OnWorker(Slot& slot, Work work) {
  pool_.Submit([this, &slot, work] {
    try {
      if (!StopsEarly()) work();
    } catch (...) {
      return Fail(std::current_exception());
    }
    Land(slot);
  });
}

// True if the results of rounds in flight are no longer needed.
bool RoundsInFlight::StopsEarly() {
  const std::lock_guard lock(mutex_);
  return abandoned_ || failure_ != nullptr;
}

// Returns the slot to the loop's thread.
void RoundsInFlight::Land(Slot& slot) {
  const std::lock_guard lock(mutex_);
  --in_flight_;
  landed_.push_back(&slot);
  changed_.notify_one();  // under the lock: this object may be gone as soon as it is released
}

void RoundsInFlight::Fail(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  --in_flight_;
  if (!failure_) failure_ = std::move(error);
  changed_.notify_one();
}

}  // namespace kgrpo
