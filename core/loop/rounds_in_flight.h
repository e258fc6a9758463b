// Rounds whose suggestion is made: the coder writes their kernels (asynchronously), then the evaluator judges them on
// the worker pool, and a cohort of which nothing is in flight any more has its turn again. Used by loop/rollout.cc,
// whose thread calls this.
//
// That thread owns the slots; one in flight belongs to whoever works on it (the coder's callback, then a worker), and
// comes back under the mutex.
#ifndef KGRPO_LOOP_ROUNDS_IN_FLIGHT_H
#define KGRPO_LOOP_ROUNDS_IN_FLIGHT_H

#include "config/pipeline.h"
#include "loop/coder_faults.h"
#include "loop/parts.h"
#include "loop/rollout.h"
#include "loop/trajectory.h"
#include "loop/worker_pool.h"
#include "store/records.h"

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

namespace kgrpo {

class RoundsInFlight {
 public:
  struct Slot {
    Slot(Trajectory t, size_t c) : trajectory(std::move(t)), cohort(c) {}
    Trajectory trajectory;
    size_t cohort;
    RoundRecord round;       // the one in flight
    bool in_flight = false;  // touched by the loop's thread alone
    // What the coder's request borrows while it is in flight.
    EvaluationView current = Evaluation().ToC();
    kgrpo_coder_request request{};
  };

  // All of it outlives this. Every cohort has its turn first, in order.
  RoundsInFlight(const PipelineConfig& config, PipelineParts& parts, WorkerPool& pool, const RolloutRequest& request,
                 size_t cohorts);

  // Waits for a cohort of which nothing is in flight. Throws what a coder or an evaluator failed with, or
  // KGRPO_ERROR_CANCELLED once the user asked to stop.
  size_t NextReady();

  // `rounds` rounds of the cohort, at least one, will be launched; it has its turn when all of them have landed.
  void Expect(size_t cohort, size_t rounds);
  // Sends the slot's suggestion to the coder. The slot must stay where it is until its cohort has its turn.
  void Launch(Slot& slot);

  // After an error: nothing new starts, and what is in flight is waited for.
  void Abandon();

  double judge_wait() const {
    return judge_wait_;
  }  // seconds that judges waited for devices; once nothing is in flight

 private:
  const RoundRecord* Recorded(const Slot& slot) const;
  void CheckAnswer(const CoderAnswer& answer);
  void Judge(Slot& slot);
  void Landed(const Slot& slot);
  void OneLess(const Slot& slot);
  void Fail(std::exception_ptr error);

  const PipelineConfig& config_;
  PipelineParts& parts_;
  WorkerPool& pool_;
  const RolloutRequest& request_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<size_t> pending_;  // of each cohort, rounds that have not landed
  std::deque<size_t> ready_;     // cohorts whose turn it is, first come first served
  size_t in_flight_ = 0;         // coder requests and evaluations
  bool abandoned_ = false;
  double judge_wait_ = 0;
  bool any_use_ = false;  // an answer was no fault of the coder's own
  CoderFaults faults_;
  std::exception_ptr failure_;  // the first
};

}  // namespace kgrpo
#endif
