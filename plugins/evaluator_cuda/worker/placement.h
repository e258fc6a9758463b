// Placement of a candidate's own device variables. For any one multiprocessor, half of an H100's L2 cache is far: near
// and far memory alternate in pieces of 4 KiB. A kernel that ends in a single block walking a small variable takes up
// to 6% longer if the variable lies far (notes/). The driver's choice differs from process to process, so
// candidate and reference would differ by chance: each gets the nearest of several places. Used by the worker.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

#include "evaluator_cuda/worker/own_kernels.h"
#include "evaluator_cuda/worker/registered_code.h"

namespace kgrpo::evaluator_cuda {

// The variables in global memory of a cubin, by its symbol table; none where it is not what it should be.
std::vector<DeviceVariable> VariablesOf(const char* cubin, size_t bytes);

// Loads machine code (a cubin or fatbin, which must stay where it is): several times where it has variables that are
// few and small enough, and keeps the copy whose variables are read soonest. Nothing of the candidate may have run yet.
cudaError_t LoadNearest(const OwnKernels& own, const void* code, const std::vector<DeviceVariable>& variables,
                        cudaLibrary_t* loaded);

// Does the same for the code that a candidate has registered, if it has such variables, and hands the copy to
// UseDeviceCode. Otherwise, or if something is unusual or fails, the code stays where the runtime loads it.
void PlaceRegistered(const OwnKernels& own);

}  // namespace kgrpo::evaluator_cuda
