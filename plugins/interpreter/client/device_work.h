// The work of a stream: launches, copies and memsets, run at once or kept in a graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "interpreter/client/cuda_types.h"
#include "interpreter/client/protocol.h"
#include "interpreter/client/runtime_state.h"

namespace kgrpo::interpreter {

struct Work {
  enum class Kind { kLaunch, kCopy, kSet };
  Kind kind = Kind::kLaunch;
  // kLaunch
  const KnownKernel* kernel = nullptr;
  LaunchRequest launch = {};
  std::vector<uint8_t> parameters;  // the kernel's parameter block, copied when the work is made
  // kCopy and kSet
  void* target = nullptr;
  const void* source = nullptr;
  size_t bytes = 0;  // of a row
  int detail = 0;    // a cudaMemcpyKind, or the byte to set
  // kCopy: rows of slices, and bytes from one to the next
  size_t rows = 1, slices = 1;
  size_t target_pitch = 0, target_slice = 0, source_pitch = 0, source_slice = 0;
};

// Each returns a CudaError.
// `arguments`: as cudaLaunchKernel takes them; what they point to is read now.
int MakeLaunch(const void* function, CudaDim3 grid, CudaDim3 block, void** arguments, size_t shared, bool cooperative,
               Work* work);
Work MakeCopy(void* target, const void* source, size_t bytes, int kind);
Work MakeSet(void* target, int value, size_t bytes);
// The address of a device variable, and its bytes.
int SymbolAddress(const void* symbol, uint64_t* address, uint64_t* bytes);
int MakeSymbolCopy(const void* symbol, void* host, size_t bytes, size_t offset, int kind, bool to_symbol, Work* work);

// Runs the work now. Returns a CudaError.
int Run(const Work& work);

}  // namespace kgrpo::interpreter
