// What the two halves of our libcudart share: the last error and questions about kernels.
#ifndef KGRPO_EVALUATOR_SIM_CLIENT_RUNTIME_STATE_H
#define KGRPO_EVALUATOR_SIM_CLIENT_RUNTIME_STATE_H

#include <cstddef>

#include "evaluator_sim/client/protocol.h"

namespace kgrpo::evaluator_sim {

// Remembers an error (not success) for cudaGetLastError and returns it.
int SetError(int error);
// The last error, forgotten by TakeError.
int TakeError();
int PeekError();

// Each returns a CudaError; `function` is a kernel's host address.
int KernelAttributes(const void* function, KernelReply* out, int* shared_limit);
int SetSharedLimit(const void* function, int bytes);
int Occupancy(const void* function, int threads, size_t shared, int* blocks);

}  // namespace kgrpo::evaluator_sim

#endif
