// Our libcudart.so.13, first half: registration, launches, memory; the second half is cudart_device.cc. A candidate's
// host code is linked against it as against NVIDIA's; each call that touches the device becomes a question to the
// judge, where memory and interpreter are. What is not here fails to load, by name. Runs in the sandboxed worker;
// nothing in it is trusted by the judge.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "interpreter/client/connection.h"
#include "interpreter/client/cuda_types.h"
#include "interpreter/client/runtime_state.h"

using namespace kgrpo::interpreter;  // NOLINT: a C interface in the global namespace over our own types

namespace {

struct Configuration {
  CudaDim3 grid, block;
  size_t shared;
  void* stream;
};

thread_local std::vector<Configuration> t_configurations;

int LaunchResolved(const void* function, CudaDim3 grid, CudaDim3 block, void** arguments, size_t shared,
                   bool cooperative) {
  KnownKernel* kernel = FindKernel(function);
  const int error = Resolve(kernel);
  if (error != kCudaSuccess) return SetError(error);
  std::vector<uint8_t> parameters(kernel->reply.parameter_bytes);
  for (uint32_t i = 0; i < kernel->reply.parameters; ++i) {
    const KernelParameterReply& parameter = kernel->parameters[i];
    std::memcpy(parameters.data() + parameter.offset, arguments[i], parameter.size);
  }
  const LaunchRequest launch = {
      kernel->index, cooperative ? 1u : 0u, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared};
  const Request request = {static_cast<uint32_t>(Operation::kLaunch), 0, 0, 0, 0, sizeof launch + parameters.size()};
  return SetError(kgrpo_ask(request, &launch, parameters.data(), parameters.size(), nullptr, 0).error);
}

bool IsDevice(const void* pointer) {
  return (reinterpret_cast<uintptr_t>(pointer) >> 47) != 0;
}

uint64_t Address(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

constexpr size_t kChunk = size_t{1} << 20;

int CopyToDevice(uint64_t target, const void* source, size_t bytes) {
  const char* from = static_cast<const char*>(source);
  for (size_t done = 0; done < bytes; done += kChunk) {
    const size_t part = bytes - done < kChunk ? bytes - done : kChunk;
    const Reply reply = Ask(Operation::kWrite, target + done, 0, 0, from + done, part);
    if (reply.error != kCudaSuccess) return reply.error;
  }
  return kCudaSuccess;
}

int CopyToHost(void* target, uint64_t source, size_t bytes) {
  char* to = static_cast<char*>(target);
  for (size_t done = 0; done < bytes; done += kChunk) {
    const size_t part = bytes - done < kChunk ? bytes - done : kChunk;
    const Reply reply = Ask(Operation::kRead, source + done, part, 0, nullptr, 0, to + done, part);
    if (reply.error != kCudaSuccess) return reply.error;
  }
  return kCudaSuccess;
}

int CopyAny(void* target, const void* source, size_t bytes, int kind) {
  const bool to_device = IsDevice(target), from_device = IsDevice(source);
  // 0 host-host, 1 host-device, 2 device-host, 3 device-device, 4 by address
  if (kind < 0 || kind > 4) return kCudaInvalidMemcpyDirection;
  if (kind != 4 && (((kind & 1) != 0) != to_device || (kind >= 2) != from_device)) return kCudaInvalidValue;
  if (to_device && from_device) return Ask(Operation::kCopy, Address(target), Address(source), bytes).error;
  if (to_device) return CopyToDevice(Address(target), source, bytes);
  if (from_device) return CopyToHost(target, Address(source), bytes);
  std::memmove(target, source, bytes);
  return kCudaSuccess;
}

int SymbolAddress(const void* symbol, uint64_t* address, uint64_t* bytes) {
  const char* name = VariableName(symbol);
  if (name == nullptr) return kCudaInvalidSymbol;
  const Reply reply = Ask(Operation::kGlobal, 0, 0, 0, name, std::strlen(name), bytes, sizeof *bytes);
  *address = reply.value;
  return reply.error;
}

int CopyWithSymbol(const void* symbol, void* host, size_t bytes, size_t offset, int kind, bool to_symbol) {
  uint64_t address = 0, size = 0;
  const int error = SymbolAddress(symbol, &address, &size);
  if (error != kCudaSuccess) return error;
  if (offset > size || bytes > size - offset) return kCudaInvalidValue;
  void* device = reinterpret_cast<void*>(address + offset);
  return to_symbol ? CopyAny(device, host, bytes, kind) : CopyAny(host, device, bytes, kind);
}

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
char __cudaInitModule(void**) {
  return 0;
}

void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, void*, void*, void*, void*, int*) {
  AddKernel(host, name);
}

void __cudaRegisterVar(void**, char* host, char*, const char* name, int, size_t, int, int) {
  AddVariable(host, name);
}

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

int __cudaLaunchKernel(void* kernel, CudaDim3 grid, CudaDim3 block, void** arguments, size_t shared, void*) {
  return LaunchResolved(kernel, grid, block, arguments, shared, false);
}

int __cudaLaunchKernel_ptsz(void* kernel, CudaDim3 grid, CudaDim3 block, void** arguments, size_t shared, void*) {
  return LaunchResolved(kernel, grid, block, arguments, shared, false);
}

// NOLINTEND(bugprone-reserved-identifier)

int cudaLaunchKernel(const void* function, CudaDim3 grid, CudaDim3 block, void** arguments, size_t shared, void*) {
  return LaunchResolved(function, grid, block, arguments, shared, false);
}

int cudaLaunchCooperativeKernel(const void* function, CudaDim3 grid, CudaDim3 block, void** arguments, size_t shared,
                                void*) {
  return LaunchResolved(function, grid, block, arguments, shared, true);
}

// --- memory ---

int cudaMalloc(void** pointer, size_t bytes) {
  if (pointer == nullptr) return SetError(kCudaInvalidValue);
  const Reply reply = Ask(Operation::kAllocate, bytes);
  if (reply.error != kCudaSuccess) return SetError(reply.error);
  *pointer = reinterpret_cast<void*>(reply.value);
  return kCudaSuccess;
}

int cudaMallocAsync(void** pointer, size_t bytes, void*) {
  return cudaMalloc(pointer, bytes);
}

int cudaFree(void* pointer) {
  return pointer == nullptr ? kCudaSuccess : SetError(Ask(Operation::kFree, Address(pointer)).error);
}

int cudaFreeAsync(void* pointer, void*) {
  return cudaFree(pointer);
}

int cudaMallocHost(void** pointer, size_t bytes) {
  *pointer = std::malloc(bytes);
  return *pointer != nullptr ? kCudaSuccess : SetError(kCudaMemoryAllocation);
}

int cudaHostAlloc(void** pointer, size_t bytes, unsigned) {
  return cudaMallocHost(pointer, bytes);
}

int cudaFreeHost(void* pointer) {
  std::free(pointer);
  return kCudaSuccess;
}

int cudaMemcpy(void* target, const void* source, size_t bytes, int kind) {
  return SetError(CopyAny(target, source, bytes, kind));
}

int cudaMemcpyAsync(void* target, const void* source, size_t bytes, int kind, void*) {
  return cudaMemcpy(target, source, bytes, kind);
}

int cudaMemset(void* target, int value, size_t bytes) {
  return SetError(Ask(Operation::kMemset, Address(target), static_cast<uint64_t>(value & 0xff), bytes).error);
}

int cudaMemsetAsync(void* target, int value, size_t bytes, void*) {
  return cudaMemset(target, value, bytes);
}

int cudaMemcpyToSymbol(const void* symbol, const void* source, size_t bytes, size_t offset, int kind) {
  return SetError(CopyWithSymbol(symbol, const_cast<void*>(source), bytes, offset, kind, true));
}

int cudaMemcpyToSymbolAsync(const void* symbol, const void* source, size_t bytes, size_t offset, int kind, void*) {
  return cudaMemcpyToSymbol(symbol, source, bytes, offset, kind);
}

int cudaMemcpyFromSymbol(void* target, const void* symbol, size_t bytes, size_t offset, int kind) {
  return SetError(CopyWithSymbol(symbol, target, bytes, offset, kind, false));
}

int cudaMemcpyFromSymbolAsync(void* target, const void* symbol, size_t bytes, size_t offset, int kind, void*) {
  return cudaMemcpyFromSymbol(target, symbol, bytes, offset, kind);
}

int cudaGetSymbolAddress(void** pointer, const void* symbol) {
  uint64_t address = 0, bytes = 0;
  const int error = SymbolAddress(symbol, &address, &bytes);
  if (error == kCudaSuccess) *pointer = reinterpret_cast<void*>(address);
  return SetError(error);
}

int cudaGetSymbolSize(size_t* size, const void* symbol) {
  uint64_t address = 0, bytes = 0;
  const int error = SymbolAddress(symbol, &address, &bytes);
  if (error == kCudaSuccess) *size = bytes;
  return SetError(error);
}

}  // extern "C"
