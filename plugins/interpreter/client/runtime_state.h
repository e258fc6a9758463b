// State shared by the parts of our libcudart (cudart*.cc, device_work.cc): the last error, the candidate's kernels and
// device variables, and questions about kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interpreter/client/cuda_types.h"
#include "interpreter/client/protocol.h"

namespace kgrpo::interpreter {

// Remembers an error (not success) for cudaGetLastError and returns it.
int SetError(int error);
// Adds a call's price to the host's time (Spend), and does the same.
int Spent(const char* call, int error);
// Return the last error; TakeError also clears it.
int TakeError();
int PeekError();

struct KnownKernel {
  const void* host = nullptr;
  const char* name = nullptr;
  bool resolved = false;
  int error = kCudaSuccess;
  uint32_t index = 0;
  KernelReply reply = {};
  KernelParameterReply parameters[256] = {};
  int shared_limit = 48 * 1024;
};

// Ends the process. The verdict names the refused call, `what` ("cudaGraphLaunch into a captured stream").
[[noreturn]] void RefuseCall(const char* what);

// Called by the candidate's constructors; `host` is the address that its host code uses.
KnownKernel* AddKernel(const void* host, const char* name);
void AddVariable(const void* host, const char* name);

// Find an object by its host address. An object that is not registered is found by the linker's name of that address;
// nullptr if there is none.
KnownKernel* FindKernel(const void* host);
const char* VariableName(const void* host);

// Asks the evaluator for the kernel's parameter layout, once. Returns a CudaError, also for nullptr.
int Resolve(KnownKernel* kernel);

// Each returns a CudaError; `function` is a kernel's host address.
int KernelAttributes(const void* function, KernelReply* out, int* shared_limit);
int SetSharedLimit(const void* function, int bytes);
int Occupancy(const void* function, int threads, size_t shared, int* blocks);

}  // namespace kgrpo::interpreter
