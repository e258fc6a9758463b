// Inputs at the timing size, drawn on the device: as many sets as a batch has calls, fresh for every round. Used by the
// timer, for the candidate's and the baseline's memory alike.
#ifndef KGRPO_EVALUATOR_CUDA_TIMING_INPUTS_H
#define KGRPO_EVALUATOR_CUDA_TIMING_INPUTS_H

#include <cstdint>
#include <memory>
#include <vector>

#include "evaluator_cuda/device.h"
#include "evaluator_cuda/layout.h"
#include "evaluator_shared/problem.h"

namespace kgrpo::evaluator_cuda {

class TimingInputs {
 public:
  // `key` is secret. All references outlive this.
  TimingInputs(const Device& device, const evaluator::Problem& problem, uint64_t key);
  ~TimingInputs();
  TimingInputs(const TimingInputs&) = delete;
  TimingInputs& operator=(const TimingInputs&) = delete;

  const Layout& layout() const { return layout_; }

  // Queues: set `set` of round `round` at `memory`, inputs drawn and outputs poisoned. The same (round, set) gives the
  // same inputs wherever it is put.
  void Put(uint8_t* memory, uint64_t round, uint64_t set) const;

  static constexpr uint8_t kPoison = 0xff;  // a NaN for every floating dtype

 private:
  // What cannot be drawn element by element is drawn by the host, a few times, and copied.
  struct Drawn {
    size_t parameter;
    std::vector<void*> variants;  // on the device
  };

  const Device& device_;
  const evaluator::Problem& problem_;
  const uint64_t key_;
  const Layout layout_;
  std::vector<Drawn> drawn_;
};

}  // namespace kgrpo::evaluator_cuda

#endif
