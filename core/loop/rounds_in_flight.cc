#include "loop/rounds_in_flight.h"

#include "loop/stopwatch.h"
#include "random/keyed.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

#include <chrono>
#include <optional>

namespace kgrpo {

RoundsInFlight::RoundsInFlight(const PipelineConfig& config, PipelineParts& parts, WorkerPool& pool,
                               const RolloutRequest& request, size_t cohorts)
    : config_(config), parts_(parts), pool_(pool), request_(request), pending_(cohorts, 0) {
  for (size_t cohort = 0; cohort < cohorts; ++cohort) ready_.push_back(cohort);
}

// ---- the loop's thread

size_t RoundsInFlight::NextReady() {
  std::unique_lock lock(mutex_);
  while (ready_.empty()) {
    if (failure_) std::rethrow_exception(failure_);
    // The flag is set by a signal, which cannot notify: hence the pause.
    changed_.wait_for(lock, std::chrono::milliseconds(100));
    if (parts_.cancelled()) throw Error(KGRPO_ERROR_CANCELLED, "stopped by the user");
  }
  if (failure_) std::rethrow_exception(failure_);
  if (parts_.cancelled()) throw Error(KGRPO_ERROR_CANCELLED, "stopped by the user");
  const size_t cohort = ready_.front();
  ready_.pop_front();
  return cohort;
}

void RoundsInFlight::Expect(size_t cohort, size_t rounds) {
  const std::lock_guard lock(mutex_);
  pending_[cohort] = rounds;
}

void RoundsInFlight::Launch(Slot& slot) {
  slot.in_flight = true;
  if (const RoundRecord* recorded = Recorded(slot)) {
    slot.round.answer = recorded->answer;
    slot.round.evaluation = recorded->evaluation;
    slot.round.evaluation_seed = recorded->evaluation_seed;
    slot.round.evaluate_seconds = recorded->evaluate_seconds;
    slot.round.unchanged = recorded->unchanged;
    const std::lock_guard lock(mutex_);
    return OneLess(slot);
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
      config_.seed, "coder",
      {static_cast<uint64_t>(request_.purpose), request_.step, trajectory.record().trajectory, slot.round.round}, 0);
  {
    const std::lock_guard lock(mutex_);
    ++in_flight_;
  }
  try {
    parts_.coder->Implement(slot.request,
                            [this, &slot](std::optional<CoderAnswer> answer, const std::exception_ptr& error) {
                              if (error) return Fail(error);
                              try {
                                CheckAnswer(*answer);
                              } catch (...) {
                                return Fail(std::current_exception());
                              }
                              slot.round.answer = *std::move(answer);
                              slot.round.answer.text.clear();  // of any size, and nobody's concern here
                              Judge(slot);
                            });
  } catch (...) {
    Fail(std::current_exception());  // nothing was accepted: this one is not in flight any more
    throw;
  }
}

// The recorded round that this one repeats, if there is one: same place, same kernel, same words.
const RoundRecord* RoundsInFlight::Recorded(const Slot& slot) const {
  const uint64_t number = slot.trajectory.record().trajectory;
  if (number >= request_.recorded.size()) return nullptr;
  const TrajectoryRecord& trajectory = request_.recorded[number];
  if (trajectory.problem_name != slot.trajectory.problem().name) return nullptr;
  const auto repeated = [&slot](const RoundRecord& round) {
    return round.round == slot.round.round && round.suggestion == slot.round.suggestion &&
           round.code_a == slot.round.code_a && round.code_b == slot.round.code_b &&
           round.completion_ids == slot.round.completion_ids;
  };
  for (const RoundRecord& round : trajectory.rounds_done) {
    if (repeated(round)) return &round;
  }
  return trajectory.failed_round && repeated(*trajectory.failed_round) ? &*trajectory.failed_round : nullptr;
}

void RoundsInFlight::Abandon() {
  {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
    if (in_flight_ == 0) return;
  }
  try {
    parts_.coder->Cancel();
  } catch (...) {
    // The first failure is the one to tell; this one only means that the answers take their time.
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return in_flight_ == 0; });
}

// ---- any thread

void RoundsInFlight::CheckAnswer(const CoderAnswer& answer) {
  if (request_.most_faults == 0) return;
  const std::lock_guard lock(mutex_);
  if (CoderFailed(answer))
    faults_.Count(answer.outcome, answer.message, 1);
  else
    any_use_ = true;
  if (!any_use_ && faults_.count() >= request_.most_faults) faults_.Throw("first", "begin again");
}

void RoundsInFlight::Judge(Slot& slot) {
  RoundRecord& round = slot.round;
  if (round.answer.outcome != KGRPO_CODER_OK) return Landed(slot);
  round.unchanged = round.answer.source == round.code_b;
  const uint64_t number = slot.trajectory.record().trajectory;
  const std::string stream = "inputs/" + slot.trajectory.problem().name;
  const bool fresh_inputs = config_.loop.fresh_inputs;
  round.evaluation_seed = fresh_inputs
                              ? Keyed(config_.seed, stream,
                                      {static_cast<uint64_t>(request_.purpose), request_.step, number, round.round}, 0)
                              : Keyed(config_.seed, stream, {}, 0);
  if (round.unchanged && !fresh_inputs) {
    round.evaluation = slot.trajectory.current();
    return Landed(slot);
  }
  pool_.Submit([this, &slot] {
    try {
      bool abandoned;
      {
        const std::lock_guard lock(mutex_);
        abandoned = abandoned_ || failure_ != nullptr;
      }
      if (!abandoned) {
        const CallTime time(parts_);
        slot.round.evaluation = parts_.evaluator->Evaluate(slot.trajectory.problem().problem, slot.round.answer.source,
                                                           slot.round.evaluation_seed);
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
void RoundsInFlight::Landed(const Slot& slot) {
  const std::lock_guard lock(mutex_);
  --in_flight_;
  OneLess(slot);
  changed_.notify_one();  // under the lock: this object may be gone as soon as it is released
}

// Under the lock.
void RoundsInFlight::OneLess(const Slot& slot) {
  if (--pending_[slot.cohort] == 0) ready_.push_back(slot.cohort);
}

void RoundsInFlight::Fail(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  --in_flight_;
  if (!failure_) failure_ = std::move(error);
  changed_.notify_one();
}

}  // namespace kgrpo
