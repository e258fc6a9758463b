// Inputs at the timing size, drawn on the device: as many sets as a batch has calls, fresh for every round. Used by the
// timer, for the candidate's and the reference's memory alike.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "evaluator_cuda/device.h"
#include "evaluator_cuda/layout.h"
#include "judge/problem/problem.h"

namespace kgrpo::evaluator_cuda {

class TimingInputs {
 public:
  // `key` is secret. `problem` outlives this.
  TimingInputs(const Device& device, const evaluator::Problem& problem, uint64_t key);
  ~TimingInputs();
  TimingInputs(const TimingInputs&) = delete;
  TimingInputs& operator=(const TimingInputs&) = delete;

  const std::vector<Layout::Tensor>& tensors() const { return layout_.tensors(); }
  uint64_t set_bytes() const { return layout_.bytes(); }

  // Appends to `tasks`: fill the place of set `set` of round `round`, in memory that begins at `memory`, with inputs
  // that are a function of (round, set, `content`), and poison the outputs.
  void Put(uint8_t* memory, uint64_t round, uint64_t set, uint64_t content, std::vector<DrawTask>* tasks) const;

  // Appends to `tasks`: draw a piece of each of that set's inputs anew, between a thousandth and all of it, as a
  // function of the same numbers. Skips inputs that cannot be drawn element by element. Put's tasks must be done
  // before.
  void Change(uint8_t* memory, uint64_t round, uint64_t set, uint64_t content, std::vector<DrawTask>* tasks) const;

  // Offset of that set's tensor in the memory. It changes with every round, since the speed of memory depends on where
  // two tensors lie in it. It keeps the set's placement (placements.h), or the other one for every second parameter.
  uint64_t Offset(uint64_t round, uint64_t set, const Layout::Tensor& tensor) const;
  // The arguments of a call on that set in the worker's memory of that number.
  std::vector<Plan::Value> Arguments(uint32_t memory, uint64_t round, uint64_t set) const;

  static constexpr uint8_t kPoison = 0xff;  // a NaN for every floating dtype

  // Bytes of a set, without an instance.
  static uint64_t SetBytes(const evaluator::Problem& problem);

 private:
  uint64_t KeyOf(uint64_t round, uint64_t set) const;

  // A parameter that cannot be drawn element by element: the host draws it a few times, and it is copied.
  struct Drawn {
    size_t parameter;
    std::vector<void*> variants;  // on the device
  };

  const evaluator::Problem& problem_;
  const uint64_t key_;
  const uint64_t slack_;  // how far a tensor may be moved
  const Layout layout_;
  std::vector<Drawn> drawn_;
};

}  // namespace kgrpo::evaluator_cuda
