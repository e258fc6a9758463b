// Where a candidate's own device variables lie. Half of an H100's L2 cache is far from any one multiprocessor, 4 KiB of
// memory here and 4 KiB there, and a kernel that ends in a single block walking a small variable takes up to 6% longer
// where that lies far (docs/log.md). The driver puts it here in one process and there in the next, so candidate and
// reference would differ by chance: each gets the nearest of several places. Used by fast_kernels.cc.
#ifndef KGRPO_EVALUATOR_CUDA_WORKER_PLACEMENT_H
#define KGRPO_EVALUATOR_CUDA_WORKER_PLACEMENT_H

#include <cuda_runtime_api.h>

#include <cstddef>

#include "evaluator_cuda/worker/own_kernels.h"

namespace kgrpo::evaluator_cuda {

// Loads machine code (a cubin of `bytes`, which must stay where it is): several times where it has variables, and
// keeps the copy whose variables are read soonest. Nothing of the candidate may have run yet.
cudaError_t LoadNearest(const OwnKernels& own, const char* code, size_t bytes, cudaLibrary_t* loaded);

}  // namespace kgrpo::evaluator_cuda

#endif
