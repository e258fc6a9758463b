// The kernels of kernels.cu in the worker's process. Used by worker_main.cc (the gates) and placement.cc.
#ifndef KGRPO_EVALUATOR_CUDA_WORKER_OWN_KERNELS_H
#define KGRPO_EVALUATOR_CUDA_WORKER_OWN_KERNELS_H

#include <cuda_runtime_api.h>

#include <cstdint>

#include "evaluator_cuda/worker/protocol.h"

namespace kgrpo::evaluator_cuda {

// Needs a context. What fails says so with the runtime's status.
class OwnKernels {
 public:
  // Loads them, and maps the pages that the judge shares.
  cudaError_t Load();

  // Whether the device reads the judge's OpenPage. Not where a device cannot use memory that its process may only read.
  bool has_gates() const { return open_page_ != nullptr; }

  // Seconds from one kernel of nothing to the next when all are launched already. It differs from process to process by
  // up to an eighth, and not within one.
  double LaunchSeconds() const;

  // These launch on the default stream.
  // The device waits here until the judge opens the gate, or for so long. Needs has_gates().
  cudaError_t Gate(uint32_t which, uint32_t sequence, uint64_t nanoseconds) const;
  cudaError_t Touch(uint32_t* lines, uint32_t count) const;
  cudaError_t Walk(const uint32_t* lines, uint32_t count, uint64_t* cycles) const;

 private:
  cudaError_t LaunchGate(const GateLine* open, uint32_t which, uint32_t sequence, uint64_t nanoseconds) const;
  bool TimeLaunches(cudaEvent_t begin, cudaEvent_t end, double* seconds) const;

  cudaKernel_t gate_ = nullptr, nothing_ = nullptr, touch_ = nullptr, walk_ = nullptr;
  const OpenPage* open_page_ = nullptr;  // as the device sees it
  ReachedPage* reached_page_ = nullptr;
};

}  // namespace kgrpo::evaluator_cuda

#endif
