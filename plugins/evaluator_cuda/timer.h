// Times a candidate in turns with the reference. Used by the evaluator under the device's lock; docs/evaluator_cuda.md
// explains the design.
//
//  - The clock is the evaluator's own. It starts with the command to a worker, or when the evaluator opens the gate for
//    calls that are launched already. It stops when the evaluator has read some of the results from the device, which
//    serves it only after the worker's work is done.
//  - Batches of two lengths are timed; the slope between them is the time of a call. So the cost of starting a batch
//    cancels, and work on any stream or thread is included.
//  - Candidate and reference take turns in random order. Before every batch the cache is flushed, and every call has
//    its own inputs.
//  - Both use the same memory, at either placement (placements.h) equally often, since the same tensors elsewhere can
//    be some percent slower, or half as fast.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "evaluator_cuda/clocks.h"
#include "evaluator_cuda/device.h"
#include "evaluator_cuda/placements.h"
#include "evaluator_cuda/rounds.h"
#include "evaluator_cuda/timing_inputs.h"
#include "evaluator_cuda/worker.h"
#include "judge/inputs/inputs.h"       // Argument
#include "judge/verdict/comparison.h"  // ErrorBound
#include "judge/verdict/oracle.h"      // Checker

namespace kgrpo::evaluator_cuda {

// A worker with its kernel loaded, and memory that it has opened.
struct Side {
  Worker& worker;
  const LentMemory& memory;
  uint32_t number;  // the worker's number of that memory
  // True if calls are launched while the device waits at a gate and run once all are queued: for kernels that take less
  // time than their launches. Their inputs are also copied into place behind a gate. The timer decides it.
  bool gated = false;
  uint64_t launches = 1;   // of a call, counted in the first calls
  bool allocated = false;  // device memory, in any call so far
};

// A process of the candidate's and one of the reference's, which take turns.
struct Pair {
  Side candidate, reference;
};

struct TimingOptions {
  Precision precision;          // of the ratio: stop when it is reached
  double budget_seconds = 0.3;  // or when so much time of the device was used
  // In any case: the interval of fewer is too often narrow by chance. Half as many for slow calls and a quarter for
  // very slow ones (kSlowSeconds, kVerySlowSeconds), beside which disturbances are small.
  uint64_t fewest_rounds = 12;
  uint64_t memory_bytes = 0;                    // for the sets of each side
  size_t most_pairs = 3;                        // of processes that take turns, where launches take much of a call
  const evaluator::Checker* checker = nullptr;  // decides whether outputs are right, in place of the reference's
};

struct Timing {
  Median ratio;      // the reference's time over the candidate's
  Median candidate;  // seconds of one call, the mean of both placements
  Median reference;
  // Seconds by which a call takes longer at one placement, and less at the other; 0 where no difference is seen.
  double candidate_spread = 0, reference_spread = 0;
  double candidate_event_seconds = 0;  // the same by events in the candidate's own process
  uint64_t rounds = 0;
  uint64_t throttled_rounds = 0;  // rounds in which something held the clocks down,
  uint64_t dropped_rounds = 0;    // and those of them that do not count: none where nearly all rounds were throttled
  uint64_t calls = 0;             // of the candidate, timed
  uint64_t sets = 0;
  uint64_t pairs = 1;               // of processes that took turns
  uint64_t reference_launches = 0;  // of a call
  double reference_launch_seconds = 0;
  double launch_seconds = 0;     // device time of a launch in the candidate's process
  bool gated = false;            // the candidate's calls were launched before the clock began
  bool reference_gated = false;  // and the reference's
  uint64_t early_checks = 0;     // batches that checked whether the candidate works before the clock begins
  double clock_mhz = 0;          // median of what was seen
  // Seconds by which the candidate's first call of a batch exceeds its other calls, less the same of the reference.
  double first_call_seconds = 0;
};

class Timer {
 public:
  // `bounds`: the largest allowed difference between candidate and reference, for each output of the layout. `key`
  // belongs to this measurement. `order_key` orders the sets and is the same for all kernels that compare. Both are
  // secret. All references outlive this.
  Timer(Device& device, Clocks& clocks, const evaluator::Problem& problem, const TimingInputs& inputs,
        std::vector<evaluator::ErrorBound> bounds, const TimingOptions& options, uint64_t key, uint64_t order_key);

  // Adds a pair of fresh processes, or none where there is no room. Trouble is the candidate's.
  using AddPair = std::function<Trouble(std::vector<Pair>*)>;

  // Measures a candidate and the reference in memory that both have open. If launches are a large part of a call, it
  // adds pairs to `first`, up to options.most_pairs. `check` is a reference's worker with memory that the candidate
  // does not see: it computes the values that the candidate's outputs are compared with. Trouble is the candidate's; a
  // reference that fails throws Error.
  Trouble Measure(const Pair& first, const Side& check, const AddPair& add_pair, Timing* timing);

  // Compares the candidate's outputs for `trials` inputs with the reference's, as Measure does for timed calls. Makes
  // no other check.
  Trouble CheckTrials(Side candidate, const Side& check, uint64_t trials);

  // The part of launches in a call above which several pairs of processes take turns.
  static constexpr double kLaunchShare = 0.15;

  // Returns the number of sets that memory must have room for, where one takes `set_bytes`.
  static uint64_t FewestSets(uint64_t set_bytes);

  // Seconds of a call of the reference while nothing else uses the device. `timing`: the measurement beside a
  // candidate.
  double MeasureAlone(Side reference, const Timing& timing);

 private:
  static constexpr uint64_t kUsualSets = 4;  // at least, but for the largest inputs
  // Upper bound for one kernel's launch on a slow processor.
  static constexpr double kLaunchSeconds = 12e-6;
  // Seconds of a call. Above the first, the cost of starting a batch is negligible; above the second, every call
  // counts.
  static constexpr double kSlowSeconds = 5e-3, kVerySlowSeconds = 50e-3;

  struct Batch {
    double seconds = 0, event_seconds = 0;
    bool allocates = false;
    double queue_seconds = 0;        // until all was launched, where there are gates
    uint64_t launches = 0;           // of kernels
    bool as_planned = true;          // it ran behind its gates, where it has some
    std::vector<uint8_t> peeked;     // of every call's outputs, when the clock was stopped
    std::vector<uint64_t> poisoned;  // how many of those bytes held poison before the call
    std::vector<uint8_t> at_gate;  // the same bytes before the gate was opened; empty unless `changed` sets were given
  };
  // The measurement of one round.
  struct Sample {
    double candidate, reference, event;        // seconds of a call
    RoundRest candidate_rest, reference_rest;  // leading is 0 where there was no short batch
    double reference_start;  // a batch's time by the evaluator's clock, less that by events in the reference's process
    bool throttled;
    double megahertz;  // 0: unknown
    bool allocates;    // device memory, in a call of the candidate
  };
  // `changed`: sets whose inputs change while the device stands at the gate; such a batch is not timed.
  Trouble RunOnce(const Side& side, const std::vector<uint64_t>& sets, const std::vector<uint64_t>& changed,
                  Batch* batch);
  Trouble RunBatch(Side* side, const std::vector<uint64_t>& sets, Batch* batch,
                   const std::vector<uint64_t>& changed = {});
  struct Rough {
    double seconds = 0;     // of a call
    uint64_t launches = 1;  // of a call
  };
  // True if batches of one length suffice, or there are too few sets for two lengths.
  bool IsSlow(const Rough& rough) const { return rough.seconds > kSlowSeconds || sets_ < kUsualSets; }
  static bool IsVerySlow(const Rough& rough) { return rough.seconds > kVerySlowSeconds; }
  struct Calls {
    uint64_t few = 0, many = 0;  // of the short and the long batch; few is 0 where there is none
  };
  Trouble Estimate(Side* side, Rough* rough);
  Trouble DecideGates(Side* candidate, const Rough& of_candidate, Side* reference, const Rough& of_reference);
  Trouble AddPairs(const Rough& of_candidate, const Rough& of_reference, const AddPair& add_pair,
                   std::vector<Pair>* pairs);
  uint64_t LongCalls(const Rough& rough, uint64_t most) const;
  Calls DrawCalls(const Rough& rough);
  std::vector<uint64_t> TakeSets(const Calls& calls, bool is_long) const;
  Trouble RunAndCheck(Side* candidate, const Side& check, const std::vector<uint64_t>& sets, Batch* batch);
  Trouble CheckNothingIsEarly(Side* candidate, const Side& check, const std::vector<uint64_t>& sets, Timing* timing);
  void ComputeElsewhere(const Side& check, const std::vector<uint64_t>& sets, bool changed);
  Trouble CheckOutputs(const Side& candidate, const Side& check, const std::vector<uint64_t>& sets, bool inputs_too);
  Trouble Mismatch(const Layout::Tensor& tensor, const CompareTask& task, evaluator::ErrorBound bound,
                   uint64_t wrong) const;
  Trouble CheckByChecker(const Side& candidate, const Side& check, uint64_t set);
  Trouble Summarise(const std::vector<Sample>& samples, uint64_t fewest_rounds, bool allocated, Timing* timing) const;
  std::vector<Place> PlacesIn(const Side& side, const std::vector<uint64_t>& sets, std::vector<uint64_t>* poisoned);
  std::vector<uint64_t> LookedAt(const std::vector<uint64_t>& sets, const std::vector<uint8_t>& early);
  std::vector<PlanCopy> StagedSets(const std::vector<uint64_t>& sets) const;
  void ThrowOfReference(const Trouble& trouble) const;
  uint64_t Random(uint64_t bound);
  std::vector<uint64_t> Shuffled(uint64_t count);

  Device& device_;
  Clocks& clocks_;
  const evaluator::Problem& problem_;
  const TimingInputs& inputs_;
  const std::vector<evaluator::ErrorBound> bounds_;
  const TimingOptions options_;
  const uint64_t key_, order_key_;
  uint64_t drawn_ = 0;  // random numbers
  uint64_t round_ = 0;
  uint64_t content_ = 0;  // of the last batch: no two have the same inputs
  uint64_t sets_ = 0;
  bool slow_reference_ = false;  // IsSlow
};

}  // namespace kgrpo::evaluator_cuda
