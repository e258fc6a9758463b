// Maps error codes of the CUDA runtime, seen in a worker, to verdicts on a candidate. Used by worker.cc.
#ifndef KGRPO_EVALUATOR_CUDA_DEVICE_ERRORS_H
#define KGRPO_EVALUATOR_CUDA_DEVICE_ERRORS_H

#include <cstdint>

#include "evaluator_shared/kernel_evaluation.h"  // Trouble

namespace kgrpo::evaluator_cuda {

// `launch_error`: cudaGetLastError() after the launch function returned; `wait_error`: of the synchronisation after it.
// Nothing where both are cudaSuccess.
evaluator::Trouble TroubleOf(int32_t launch_error, int32_t wait_error);

}  // namespace kgrpo::evaluator_cuda

#endif
