// The real CUDA runtime as the worker uses it: looked up in the toolkit's libcudart.so.13, which the candidate links
// too. The worker's own definitions of a few of its functions (interposed.cc) stand before it.
#ifndef KGRPO_EVALUATOR_CUDA_WORKER_RUNTIME_H
#define KGRPO_EVALUATOR_CUDA_WORKER_RUNTIME_H

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

// The next launch in each stream belongs to another call of the launch function: it must not begin before what was
// launched there earlier has ended.
void RuntimeBeginCall();

// Loads the library for everybody after us. Returns why it could not, or "".
std::string LoadRuntime(const char* path);

// Has the current device's pool keep memory that is freed, as pools that candidates make do. Else it goes back to the
// driver at each of the worker's synchronisations, which takes longer than many a call and is none of its work.
cudaError_t KeepMemoryOfDefaultPool();

// The library's own function of that name; ends the process where there is none.
void* RuntimeFunction(const char* name);
// The same with its type: RUNTIME(cudaFree)(pointer).
#define RUNTIME(name) reinterpret_cast<decltype(&name)>(::kgrpo::evaluator_cuda::RuntimeFunction(#name))

}  // namespace kgrpo::evaluator_cuda

#endif
