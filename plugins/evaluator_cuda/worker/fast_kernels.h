// Kernels of a candidate that came by the fast compile route: its host object holds empty functions and variables in
// their place, its machine code comes beside it. Used by the worker, which loads the code, and by interposed.cc, which
// puts the kernel where the runtime is given the function.
#ifndef KGRPO_EVALUATOR_CUDA_WORKER_FAST_KERNELS_H
#define KGRPO_EVALUATOR_CUDA_WORKER_FAST_KERNELS_H

#include <cstddef>
#include <string>

#include "evaluator_cuda/worker/own_kernels.h"

namespace kgrpo::evaluator_cuda {

// Loads the machine code, which must stay where it is. Returns why it could not, or "".
std::string LoadDeviceCode(const OwnKernels& own, const char* code, size_t bytes);

// The kernel that the host's function stands for; the function itself where it stands for none.
const void* KernelOf(const void* function);

// The device's variable that the host's stands for, or null.
void* VariableOf(const void* symbol);

}  // namespace kgrpo::evaluator_cuda

#endif
