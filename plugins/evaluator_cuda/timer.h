// How long a candidate takes beside the baseline. The clock is the judge's own: it runs from the word to a worker until
// the worker has waited for its device, over batches of two lengths, and the slope between them is the time of a call;
// what starting a batch costs falls out, and work on any stream or thread is inside. Candidate and baseline take turns in
// random order; before every batch the cache is flushed, and every call of a round has inputs and addresses of its own.
// Used by the judge under the device's lock. docs/judging.md says why each of this is so.
#ifndef KGRPO_EVALUATOR_CUDA_TIMER_H
#define KGRPO_EVALUATOR_CUDA_TIMER_H

#include <cstdint>
#include <vector>

#include "evaluator_cuda/clocks.h"
#include "evaluator_cuda/device.h"
#include "evaluator_cuda/median.h"
#include "evaluator_cuda/timing_inputs.h"
#include "evaluator_cuda/worker.h"
#include "evaluator_shared/comparison.h"  // ErrorBound

namespace kgrpo::evaluator_cuda {

// One side of the comparison: a worker with its candidate loaded, and the memory that is lent to it.
struct Side {
  Worker& worker;
  const LentMemory& memory;
};

struct TimingOptions {
  double relative_error = 0.02;  // stop when the ratio's 95% interval is this narrow, half its width
  double budget_seconds = 0.3;   // or when so much time of the device was used
  uint64_t memory_bytes = 0;     // of each side that sets may take
};

struct Timing {
  Median ratio;      // the baseline's time over the candidate's
  Median candidate;  // seconds of one call
  Median baseline;
  double candidate_event_seconds = 0;  // the same by events in the candidate's own process
  uint64_t rounds = 0;
  uint64_t dropped_rounds = 0;  // in which the clocks were throttled
  uint64_t calls = 0;           // of the candidate, timed
  uint64_t sets = 0;
  double clock_mhz = 0;         // median of what was seen
};

class Timer {
 public:
  // `bounds`: for each output of the layout, how far candidate and baseline may be apart. All references outlive this.
  Timer(const Device& device, Clocks& clocks, const evaluator::Problem& problem, const TimingInputs& inputs,
        std::vector<evaluator::ErrorBound> bounds, const TimingOptions& options, uint64_t key);

  // How many sets a side's memory must hold.
  uint64_t sets() const { return sets_; }

  // Measures. Trouble is the candidate's; a baseline that fails throws Error.
  Trouble Measure(Side candidate, Side baseline, Timing* timing);

 private:
  struct Batch {
    double seconds = 0, event_seconds = 0;
  };
  struct Peek {
    uint64_t offset;  // in the lent memory
    std::vector<uint8_t> bytes;
  };

  Trouble RunBatch(const Side& side, const std::vector<uint64_t>& sets, Batch* batch);
  Trouble Estimate(const Side& side, double* seconds);
  void PutSets(const Side& side, uint64_t count);
  Peek PeekAt(const Side& side, uint64_t set);
  Trouble CheckOutputs(const Side& candidate, const Side& baseline, const std::vector<uint64_t>& sets);
  uint64_t Random(uint64_t bound);
  std::vector<uint64_t> Shuffled(uint64_t count);

  const Device& device_;
  Clocks& clocks_;
  const evaluator::Problem& problem_;
  const TimingInputs& inputs_;
  const std::vector<evaluator::ErrorBound> bounds_;
  const TimingOptions options_;
  const uint64_t key_;
  uint64_t drawn_ = 0;  // random numbers
  uint64_t round_ = 0;
  uint64_t sets_ = 0;
};

}  // namespace kgrpo::evaluator_cuda

#endif
