// Offsets of the tensors of one call in lent memory. Used by the evaluator, for one call at a correctness size, and by
// the timer, for many sets one after the other.
#pragma once

#include <cstdint>
#include <vector>

#include "evaluator_cuda/worker.h"  // Plan
#include "judge/inputs/inputs.h"    // Argument
#include "judge/problem/problem.h"  // Problem, Bindings

namespace kgrpo::evaluator_cuda {

class Layout {
 public:
  struct Tensor {
    size_t parameter;
    uint64_t offset;   // from the set's start
    uint64_t bytes;    // with the gaps between its rows, where it has a pitch
    int64_t elements;  // likewise
  };

  // Tensors begin at multiples of this, as cudaMalloc's allocations do; it is also what textures ask for.
  static constexpr uint64_t kAlignment = 512;

  // `guard` bytes are left free before, between and after the tensors.
  Layout(const evaluator::Problem& problem, const evaluator::Bindings& size, uint64_t guard);

  const std::vector<Tensor>& tensors() const { return tensors_; }
  uint64_t bytes() const { return bytes_; }  // of a whole set, a multiple of kAlignment

  // The arguments of a call on the set that starts at `base` in the worker's memory of that number, and behind them
  // each tensor's extents, for candidates that take tensors (judge/compile/candidate_form.h).
  std::vector<Plan::Value> Arguments(uint32_t memory, uint64_t base) const;

 private:
  std::vector<Tensor> tensors_;
  std::vector<Plan::Value> values_;  // in memory 1 with base 0
  uint64_t bytes_ = 0;
};

}  // namespace kgrpo::evaluator_cuda
