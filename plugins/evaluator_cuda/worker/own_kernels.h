// The kernels of kernels.cu in the worker's process. Used by worker_main.cc (the gates) and placement.cc.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "evaluator_cuda/worker/protocol.h"

namespace kgrpo::evaluator_cuda {

// Needs a CUDA context. Functions that fail return the runtime's status.
class OwnKernels {
 public:
  // Loads them, and maps the pages that the evaluator shares.
  cudaError_t Load();

  // Why the device cannot read the evaluator's OpenPage, or cudaSuccess. Some devices cannot use memory that is
  // read-only for their process.
  cudaError_t gates_error() const { return gates_error_; }

  // Seconds from one kernel of nothing to the next when all are launched already. It differs from process to process by
  // up to an eighth, and not within one.
  double LaunchSeconds() const;

  // These launch on the default stream.
  // The device waits here until the evaluator opens the gate, at most for `nanoseconds`. Needs gates_error() ==
  // cudaSuccess.
  cudaError_t Gate(uint32_t which, uint32_t sequence, uint64_t nanoseconds) const;
  cudaError_t Touch(uint32_t* lines, uint32_t count) const;
  cudaError_t Walk(const uint32_t* lines, uint32_t count, uint64_t* cycles) const;

 private:
  cudaError_t LaunchGate(const GateLine* open, uint32_t which, uint32_t sequence, uint64_t nanoseconds) const;
  bool TimeLaunches(cudaEvent_t begin, cudaEvent_t end, double* seconds) const;

  cudaKernel_t gate_ = nullptr, nothing_ = nullptr, touch_ = nullptr, walk_ = nullptr;
  cudaError_t gates_error_ = cudaErrorNotReady;
  const OpenPage* open_page_ = nullptr;  // as the device sees it
  ReachedPage* reached_page_ = nullptr;
};

}  // namespace kgrpo::evaluator_cuda
