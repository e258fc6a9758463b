// The real CUDA runtime as the worker uses it: looked up in the toolkit's libcudart.so.13, which the candidate links
// too. The worker's own definitions of a few of its functions (interposed.cc) stand before it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace kgrpo::evaluator_cuda {

// Since the library was loaded, or since the last reset.
struct Counts {
  uint64_t launches = 0, allocations = 0, refused = 0;
};
Counts& RuntimeCounts();

// The kernel launched with the most threads since the last reset, as the runtime takes it.
struct LargestLaunch {
  const void* kernel = nullptr;
  uint64_t grid_blocks = 0;
  uint32_t block_threads = 0;
  size_t shared_bytes = 0;  // dynamic
};
LargestLaunch& RuntimeLargestLaunch();

// Begins another call of the launch function. In each stream, its first launch must not begin before earlier launches
// there have ended.
void RuntimeBeginCall();

// Loads the library, for all objects that are loaded later. Returns the reason if that fails, else "".
std::string LoadRuntime(const char* path);

// Makes the current device's default pool keep freed memory, as pools that candidates make do. Otherwise the pool
// returns it to the driver at each of the worker's synchronisations. That takes longer than many a call, and is not the
// call's work.
cudaError_t KeepMemoryOfDefaultPool();

// The library's own function of that name; ends the process where there is none.
void* RuntimeFunction(const char* name);
// The same with its type: RUNTIME(cudaFree)(pointer).
#define RUNTIME(name) reinterpret_cast<decltype(&name)>(::kgrpo::evaluator_cuda::RuntimeFunction(#name))

}  // namespace kgrpo::evaluator_cuda
