// Kernels whose machine code the worker has loaded itself. That of the fast compile route comes beside the candidate's
// host object, which holds empty functions and variables in the kernels' place; nvcc's is in the object, and loaded
// once more where that places it better (placement.h). Used by the worker, which loads the code, and by interposed.cc,
// which substitutes the kernel where the runtime gets the function.
#pragma once

#include <cuda_runtime_api.h>

namespace kgrpo::evaluator_cuda {

// From now on `code` holds the candidate's kernels and variables.
void UseDeviceCode(cudaLibrary_t code);

// The kernel that the host's function stands for; the function itself where it stands for none.
const void* KernelOf(const void* function);

// The device's variable that the host's stands for, or null.
void* VariableOf(const void* symbol);

}  // namespace kgrpo::evaluator_cuda
