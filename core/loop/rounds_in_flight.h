// Rounds under way: the policy writes the suggestion, the coder the kernel, the evaluator judges it, the reward scores
// it. Each round passes through these stages independently of the others. Used by loop/rollout.cc and
// optimize/optimize.cc, from one thread.
//
// The calling thread owns the slots. A slot in flight belongs to the thread that works on it (the policy's or the
// coder's callback, then a worker), and goes back to the calling thread under the mutex.
#ifndef KGRPO_LOOP_ROUNDS_IN_FLIGHT_H
#define KGRPO_LOOP_ROUNDS_IN_FLIGHT_H

#include "base/worker_pool.h"
#include "config/pipeline.h"
#include "loop/rollout.h"
#include "loop/round_faults.h"
#include "loop/trajectory.h"
#include "plugin/parts.h"
#include "store/records.h"

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace kgrpo {

// The sampling of a pipeline, as a policy takes it.
kgrpo_sampling SamplingOf(const SamplingConfig& config);

// Seed of a problem's secret inputs: all of a run's kernels get the same ones, so that their times compare and repeats
// are cached.
uint64_t SharedInputsSeed(uint64_t run_seed, const std::string& problem);

class RoundsInFlight {
 public:
  struct Slot {
    Slot(Trajectory t, const RolloutRequest& r) : trajectory(std::move(t)), rollout(r) {}
    Trajectory trajectory;
    const RolloutRequest& rollout;  // the rollout of this trajectory
    RoundRecord round;              // the one under way
    uint64_t suggestion_seed = 0;   // for Suggest
    // Borrowed by the coder's request while it is in flight.
    EvaluationView current = Evaluation().ToC();
    kgrpo_coder_request request{};
  };

  // All but `request` outlives this. Its purpose and most_faults are those of all slots.
  RoundsInFlight(const PipelineConfig& config, PipelineParts& parts, WorkerPool& pool, const RolloutRequest& request);

  // Sends rounds with encoded prompts to the policy, at most loop.generation_batch at once, and then through the other
  // stages. Slots must not move in memory until they have landed.
  void Suggest(const std::vector<Slot*>& slots);
  // Sends a round that has a suggestion to the coder, and then through the other stages.
  void Implement(Slot& slot);

  // Waits until rounds have landed, and returns them, with answer, evaluation and score, or with the failure of a part.
  // With `until_written` waits until the policy has no request instead, and may return none. Throws a plugin's error
  // that ends the run (FailsOneRound), or KGRPO_ERROR_CANCELLED once the user asked to stop. `under_way`: see
  // RolloutRequest.
  std::vector<Slot*> Landed(const UnderWay& under_way, bool until_written = false);
  // Returns the slots that have landed by now. Neither waits nor throws.
  std::vector<Slot*> TakeLanded();

  // For use after an error: starts nothing new, cancels the policy and the coder, and waits for all rounds in flight.
  void Abandon();

  // Seconds since the last call in which at least one suggestion was being generated. Call while none is.
  double TakeGenerateSeconds() { return std::exchange(generate_seconds_, 0); }

 private:
  void Submit(const std::vector<Slot*>& slots);
  void TellUnderWay(const UnderWay& under_way, std::unique_lock<std::mutex>& lock);
  void GenerationEnded();
  void SendToCoder(Slot& slot);
  bool Replays() const;
  const RoundRecord* Recorded(const Slot& slot) const;
  void CheckAnswer(RoundPart part, const RoundRecord& round);
  template <typename Call>
  void Ask(RoundPart part, RoundRecord& round, Call call);
  void AskReward(Slot& slot);
  void Judge(Slot& slot);
  void Score(Slot& slot);
  template <typename Work>
  void OnWorker(Slot& slot, Work work);
  void Land(Slot& slot);
  void Fail(std::exception_ptr error);
  bool StopsEarly();

  const PipelineConfig& config_;
  PipelineParts& parts_;
  WorkerPool& pool_;
  const Purpose purpose_;
  const size_t most_faults_;
  kgrpo_sampling sampling_{};

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<Slot*> landed_;
  std::deque<Slot*> waiting_;  // for their turn in the policy
  size_t generating_ = 0;
  Stopwatch generation_;  // since generating_ rose above 0
  double generate_seconds_ = 0;
  size_t in_flight_ = 0;  // rounds sent and not landed
  size_t coding_ = 0;     // rounds among them that wait for the coder
  RoundsUnderWay told_;   // the last value that the user was told
  std::chrono::steady_clock::time_point told_at_;
  bool abandoned_ = false;
  std::array<bool, kRoundParts.size()> any_use_{};  // some answer of the part was no fault
  std::array<PartFaults, kRoundParts.size()> faults_ = NoFaults();
  std::exception_ptr failure_;  // the first
};

}  // namespace kgrpo
#endif
