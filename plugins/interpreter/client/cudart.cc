// Our libcudart.so.13, first part: registration, launches, memory. The others are cudart_device.cc,
// cudart_streams.cc and cudart_images.cc. A candidate's host code is linked against it as against NVIDIA's. Each call
// that touches the device becomes a request to the evaluator, which holds the memory and the interpreter. Functions
// that are missing here fail to load, by name. Runs in the sandboxed worker; the evaluator trusts nothing in it.
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "interpreter/client/connection.h"
#include "interpreter/client/cuda_types.h"
#include "interpreter/client/runtime_state.h"
#include "interpreter/client/stream_capture.h"

using namespace kgrpo::interpreter;  // NOLINT: a C interface in the global namespace over our own types

namespace {

struct Configuration {
  CudaDim3 grid, block;
  size_t shared;
  void* stream;
};

thread_local std::vector<Configuration> t_configurations;

int LaunchResolved(const void* function, CudaDim3 grid, CudaDim3 block, void** arguments, size_t shared, void* stream,
                   bool cooperative) {
  Work work;
  const int error = MakeLaunch(function, grid, block, arguments, shared, cooperative, &work);
  return SetError(error != kCudaSuccess ? error : Submit(stream, std::move(work)));
}

int CopyWithSymbol(const void* symbol, void* host, size_t bytes, size_t offset, int kind, bool to_symbol, void* stream,
                   bool at_once) {
  Work work;
  const int error = MakeSymbolCopy(symbol, host, bytes, offset, kind, to_symbol, &work);
  if (error != kCudaSuccess) return SetError(error);
  return SetError(at_once ? RunAtOnce(work) : Submit(stream, std::move(work)));
}

uint64_t Address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

}  // namespace

extern "C" {

// --- registration: called by the constructors that nvcc (or our own fast compile) puts into a candidate ---

// The names are CUDA's.
// NOLINTBEGIN(bugprone-reserved-identifier)

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 0; }

void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, void*, void*, void*, void*, int*) {
  AddKernel(host, name);
}

void __cudaRegisterVar(void**, char* host, char*, const char* name, int, size_t, int, int) { AddVariable(host, name); }

unsigned __cudaPushCallConfiguration(CudaDim3 grid, CudaDim3 block, size_t shared, void* stream) {
  t_configurations.push_back({grid, block, shared, stream});
  return 0;
}

int __cudaPopCallConfiguration(CudaDim3* grid, CudaDim3* block, size_t* shared, void* stream) {
  if (t_configurations.empty()) return kCudaInvalidConfiguration;
  const Configuration& top = t_configurations.back();
  *grid = top.grid;
  *block = top.block;
  *shared = top.shared;
  *static_cast<void**>(stream) = top.stream;
  t_configurations.pop_back();
  return kCudaSuccess;
}

int __cudaGetKernel(void** kernel, const void* host) {
  *kernel = FindKernel(host);
  return *kernel != nullptr ? kCudaSuccess : SetError(kCudaInvalidDeviceFunction);
}

int __cudaLaunchKernel(void* kernel, CudaDim3 grid, CudaDim3 block, void** arguments, size_t shared, void* stream) {
  return LaunchResolved(kernel, grid, block, arguments, shared, stream, false);
}

int __cudaLaunchKernel_ptsz(void* kernel, CudaDim3 grid, CudaDim3 block, void** arguments, size_t shared,
                            void* stream) {
  return LaunchResolved(kernel, grid, block, arguments, shared, stream, false);
}

// NOLINTEND(bugprone-reserved-identifier)

int cudaLaunchKernel(const void* function, CudaDim3 grid, CudaDim3 block, void** arguments, size_t shared,
                     void* stream) {
  return LaunchResolved(function, grid, block, arguments, shared, stream, false);
}

int cudaLaunchCooperativeKernel(const void* function, CudaDim3 grid, CudaDim3 block, void** arguments, size_t shared,
                                void* stream) {
  return LaunchResolved(function, grid, block, arguments, shared, stream, true);
}

int cudaLaunchKernelExC(const CudaLaunchConfig* config, const void* function, void** arguments) {
  enum {
    kIgnore = 0,
    kAccessPolicy = 1,
    kCooperative = 2,
    kSynchronization = 3,
    kClusterDimension = 4,
    kOverlap = 6,
    kPriority = 8,
    kMemSyncMap = 9,
    kMemSyncDomain = 10,
    kSharedCarveout = 14
  };
  if (config == nullptr) return SetError(kCudaInvalidValue);
  bool cooperative = false, overlaps = false;
  for (unsigned i = 0; i < config->attribute_count; ++i) {
    const unsigned* value = config->attributes[i].value;
    switch (config->attributes[i].id) {
      case kCooperative: cooperative = value[0] != 0; break;
      case kOverlap: overlaps = value[0] != 0; break;
      case kClusterDimension:
        if (value[0] * value[1] * value[2] != 1) RefuseCall("thread block clusters");
        break;
      case kIgnore:  // and hints
      case kAccessPolicy:
      case kSynchronization:
      case kPriority:
      case kMemSyncMap:
      case kMemSyncDomain:
      case kSharedCarveout: break;
      default: RefuseCall("a launch attribute of cudaLaunchKernelEx");
    }
  }
  Work work;
  const int error =
      MakeLaunch(function, config->grid, config->block, arguments, config->shared_bytes, cooperative, &work);
  if (error != kCudaSuccess) return SetError(error);
  work.launch.overlaps = overlaps ? 1 : 0;
  return SetError(Submit(config->stream, std::move(work)));
}

// --- memory ---

int cudaMalloc(void** pointer, size_t bytes) {
  if (pointer == nullptr) return SetError(kCudaInvalidValue);
  if (const int error = WorkAtOnce(); error != kCudaSuccess) return SetError(error);
  const Reply reply = Ask(Operation::kAllocate, bytes);
  if (reply.error != kCudaSuccess) return SetError(reply.error);
  *pointer = reinterpret_cast<void*>(reply.value);
  return kCudaSuccess;
}

int cudaMallocAsync(void** pointer, size_t bytes, void* stream) {
  if (IsCapturing(stream)) RefuseCall("cudaMallocAsync in a captured graph");
  return cudaMalloc(pointer, bytes);
}

int cudaFree(void* pointer) {
  if (pointer == nullptr) return kCudaSuccess;
  if (const int error = WorkAtOnce(); error != kCudaSuccess) return SetError(error);
  return SetError(Ask(Operation::kFree, Address(pointer)).error);
}

int cudaFreeAsync(void* pointer, void* stream) {
  if (IsCapturing(stream)) RefuseCall("cudaFreeAsync in a captured graph");
  return cudaFree(pointer);
}

int cudaMallocHost(void** pointer, size_t bytes) {
  Spend(__func__, static_cast<double>(bytes));
  *pointer = std::malloc(bytes);
  return *pointer != nullptr ? kCudaSuccess : SetError(kCudaMemoryAllocation);
}

int cudaHostAlloc(void** pointer, size_t bytes, unsigned) { return cudaMallocHost(pointer, bytes); }

int cudaFreeHost(void* pointer) {
  Spend(__func__);
  std::free(pointer);
  return kCudaSuccess;
}

int cudaMemcpy(void* target, const void* source, size_t bytes, int kind) {
  return SetError(RunAtOnce(MakeCopy(target, source, bytes, kind)));
}

int cudaMemcpyAsync(void* target, const void* source, size_t bytes, int kind, void* stream) {
  return SetError(Submit(stream, MakeCopy(target, source, bytes, kind)));
}

int cudaMemset(void* target, int value, size_t bytes) { return SetError(RunAtOnce(MakeSet(target, value, bytes))); }

int cudaMemsetAsync(void* target, int value, size_t bytes, void* stream) {
  return SetError(Submit(stream, MakeSet(target, value, bytes)));
}

int cudaMemcpyToSymbol(const void* symbol, const void* source, size_t bytes, size_t offset, int kind) {
  return CopyWithSymbol(symbol, const_cast<void*>(source), bytes, offset, kind, true, nullptr, true);
}

int cudaMemcpyToSymbolAsync(const void* symbol, const void* source, size_t bytes, size_t offset, int kind,
                            void* stream) {
  return CopyWithSymbol(symbol, const_cast<void*>(source), bytes, offset, kind, true, stream, false);
}

int cudaMemcpyFromSymbol(void* target, const void* symbol, size_t bytes, size_t offset, int kind) {
  return CopyWithSymbol(symbol, target, bytes, offset, kind, false, nullptr, true);
}

int cudaMemcpyFromSymbolAsync(void* target, const void* symbol, size_t bytes, size_t offset, int kind, void* stream) {
  return CopyWithSymbol(symbol, target, bytes, offset, kind, false, stream, false);
}

int cudaGetSymbolAddress(void** pointer, const void* symbol) {
  Spend(__func__);
  uint64_t address = 0, bytes = 0;
  const int error = SymbolAddress(symbol, &address, &bytes);
  if (error == kCudaSuccess) *pointer = reinterpret_cast<void*>(address);
  return SetError(error);
}

int cudaGetSymbolSize(size_t* size, const void* symbol) {
  Spend(__func__);
  uint64_t address = 0, bytes = 0;
  const int error = SymbolAddress(symbol, &address, &bytes);
  if (error == kCudaSuccess) *size = bytes;
  return SetError(error);
}

}  // extern "C"
