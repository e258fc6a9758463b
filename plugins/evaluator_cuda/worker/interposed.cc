// Replacements for functions of the CUDA runtime, which candidates find before the real ones. They count kernel
// launches and allocations, and refuse what would change the device for others. A candidate can get around them; what
// it gains by that is caught elsewhere (docs/evaluator_cuda.md).
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "evaluator_cuda/worker/fast_kernels.h"
#include "evaluator_cuda/worker/registered_code.h"
#include "evaluator_cuda/worker/runtime.h"

namespace kgrpo::evaluator_cuda {
namespace {

void* g_library = nullptr;
std::vector<cudaStream_t> g_streams_of_call;  // in which the call at hand has launched

cudaError_t KeepMemory(cudaMemPool_t pool) {
  uint64_t all = UINT64_MAX;
  return RUNTIME(cudaMemPoolSetAttribute)(pool, cudaMemPoolAttrReleaseThreshold, &all);
}

}  // namespace

void RuntimeBeginCall() { g_streams_of_call.clear(); }

Counts& RuntimeCounts() {
  static Counts counts;
  return counts;
}

LargestLaunch& RuntimeLargestLaunch() {
  static LargestLaunch largest;
  return largest;
}

std::string LoadRuntime(const char* path) {
  g_library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (g_library != nullptr) return "";
  const char* why = dlerror();
  return why != nullptr ? why : "unknown";
}

void* RuntimeFunction(const char* name) {
  void* function = dlsym(g_library, name);
  if (function == nullptr) _exit(126);
  return function;
}

cudaError_t KeepMemoryOfDefaultPool() {
  int supported = 0;
  cudaMemPool_t pool = nullptr;
  cudaError_t status = RUNTIME(cudaDeviceGetAttribute)(&supported, cudaDevAttrMemoryPoolsSupported, 0);
  if (status != cudaSuccess || supported == 0) return status;
  status = RUNTIME(cudaDeviceGetDefaultMemPool)(&pool, 0);
  return status == cudaSuccess ? KeepMemory(pool) : status;
}

}  // namespace kgrpo::evaluator_cuda

using kgrpo::evaluator_cuda::KernelOf;
using kgrpo::evaluator_cuda::VariableOf;

#define VISIBLE extern "C" __attribute__((visibility("default")))
#define COUNT(what) ++kgrpo::evaluator_cuda::RuntimeCounts().what
// Forwards to the library's function of the same name and type.
#define FORWARD(name, ...)                \
  static const auto real = RUNTIME(name); \
  return real(__VA_ARGS__)

namespace {

constexpr char kTensorMapEncoder[] = "cuTensorMapEncodeTiled";

// Returns whether it is the call's first launch in the stream.
bool NoteLaunch(const void* kernel, dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  COUNT(launches);
  kgrpo::evaluator_cuda::LargestLaunch& largest = kgrpo::evaluator_cuda::RuntimeLargestLaunch();
  const uint64_t blocks = uint64_t{grid.x} * grid.y * grid.z;
  const uint32_t threads = block.x * block.y * block.z;
  if (blocks * threads > largest.grid_blocks * largest.block_threads) largest = {kernel, blocks, threads, shared};
  auto& streams = kgrpo::evaluator_cuda::g_streams_of_call;
  if (std::find(streams.begin(), streams.end(), stream) != streams.end()) return false;
  streams.push_back(stream);
  return true;
}

}  // namespace

VISIBLE cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared,
                                     cudaStream_t stream) {
  const void* const kernel = KernelOf(function);
  NoteLaunch(kernel, grid, block, shared, stream);
  FORWARD(cudaLaunchKernel, kernel, grid, block, arguments, shared, stream);
}
// CUDA 13 compiles <<<>>> to this; no header declares it.
// NOLINTBEGIN(bugprone-reserved-identifier): the runtime's own name
VISIBLE cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                                       cudaStream_t stream) {
  NoteLaunch(kernel, grid, block, shared, stream);
  FORWARD(__cudaLaunchKernel, kernel, grid, block, arguments, shared, stream);
}
VISIBLE cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  const void* const ours = KernelOf(function);
  if (ours != function) {
    *kernel = static_cast<cudaKernel_t>(const_cast<void*>(ours));
    return cudaSuccess;
  }
  FORWARD(__cudaGetKernel, kernel, function);
}
// Objects compiled by nvcc register their device code here, before any other code of theirs runs.
VISIBLE void** __cudaRegisterFatBinary(void* wrapper) {
  struct Wrapper {  // as crt/fatbinary_section.h has it
    int magic, version;
    const void* data;
    const void* others;
  };
  kgrpo::evaluator_cuda::Registered().fatbins.push_back(static_cast<const Wrapper*>(wrapper)->data);
  FORWARD(__cudaRegisterFatBinary, wrapper);
}
VISIBLE void __cudaRegisterFunction(void** handle, const char* function, char* device_function, const char* name,
                                    int thread_limit, uint3* thread, uint3* block, dim3* block_dim, dim3* grid_dim,
                                    int* warp_size) {
  kgrpo::evaluator_cuda::Registered().names[function] = name;
  FORWARD(__cudaRegisterFunction, handle, function, device_function, name, thread_limit, thread, block, block_dim,
          grid_dim, warp_size);
}
VISIBLE void __cudaRegisterVar(void** handle, char* variable, char* address, const char* name, int external,
                               size_t bytes, int constant, int global) {
  kgrpo::evaluator_cuda::Registered().names[variable] = name;
  if (constant == 0) kgrpo::evaluator_cuda::Registered().variables.push_back({name, bytes});
  FORWARD(__cudaRegisterVar, handle, variable, address, name, external, bytes, constant, global);
}
// NOLINTEND(bugprone-reserved-identifier)
VISIBLE cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** arguments) {
  const void* const kernel = KernelOf(function);
  cudaLaunchConfig_t ours = *config;
  std::vector<cudaLaunchAttribute> attributes;
  if (NoteLaunch(kernel, config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream)) {
    // A programmatic launch begins before the launch ahead of it has ended: within a call that is an optimisation,
    // between calls it would hide a part of each.
    std::copy_if(config->attrs, config->attrs + config->numAttrs, std::back_inserter(attributes),
                 [](const auto& one) { return one.id != cudaLaunchAttributeProgrammaticStreamSerialization; });
    ours.attrs = attributes.data();
    ours.numAttrs = static_cast<unsigned>(attributes.size());
  }
  FORWARD(cudaLaunchKernelExC, &ours, kernel, arguments);
}
VISIBLE cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                                                size_t shared, cudaStream_t stream) {
  const void* const kernel = KernelOf(function);
  NoteLaunch(kernel, grid, block, shared, stream);
  FORWARD(cudaLaunchCooperativeKernel, kernel, grid, block, arguments, shared, stream);
}
VISIBLE cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  COUNT(launches);
  FORWARD(cudaGraphLaunch, graph, stream);
}

VISIBLE cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  COUNT(allocations);
  FORWARD(cudaMalloc, pointer, bytes);
}
VISIBLE cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  COUNT(allocations);
  FORWARD(cudaMallocAsync, pointer, bytes, stream);
}
VISIBLE cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  COUNT(allocations);
  FORWARD(cudaMallocFromPoolAsync, pointer, bytes, pool, stream);
}
VISIBLE cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  COUNT(allocations);
  FORWARD(cudaMallocPitch, pointer, pitch, width, height);
}
VISIBLE cudaError_t cudaMalloc3D(cudaPitchedPtr* pointer, cudaExtent extent) {
  COUNT(allocations);
  FORWARD(cudaMalloc3D, pointer, extent);
}
VISIBLE cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* format, size_t width,
                                    size_t height, unsigned flags) {
  COUNT(allocations);
  FORWARD(cudaMallocArray, array, format, width, height, flags);
}
VISIBLE cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* format, cudaExtent extent,
                                      unsigned flags) {
  COUNT(allocations);
  FORWARD(cudaMalloc3DArray, array, format, extent, flags);
}
VISIBLE cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t* array, const cudaChannelFormatDesc* format,
                                             cudaExtent extent, unsigned levels, unsigned flags) {
  COUNT(allocations);
  FORWARD(cudaMallocMipmappedArray, array, format, extent, levels, flags);
}
VISIBLE cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                             const cudaGraphNode_t* dependencies, size_t count,
                                             cudaMemAllocNodeParams* parameters) {
  COUNT(allocations);
  FORWARD(cudaGraphAddMemAllocNode, node, graph, dependencies, count, parameters);
}
VISIBLE cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  const cudaError_t status = RUNTIME(cudaMemPoolCreate)(pool, properties);
  return status == cudaSuccess ? kgrpo::evaluator_cuda::KeepMemory(*pool) : status;
}
// More managed memory than the card has can hang it; none is needed.
VISIBLE cudaError_t cudaMallocManaged(void**, size_t, unsigned) {
  COUNT(refused);
  return cudaErrorNotSupported;
}

VISIBLE cudaError_t cudaIpcOpenMemHandle(void**, cudaIpcMemHandle_t, unsigned) {
  COUNT(refused);
  return cudaErrorNotSupported;
}
VISIBLE cudaError_t cudaDeviceReset() {
  COUNT(refused);
  return cudaErrorNotSupported;
}
// Part of the L2 cache set aside would outlast the flush between timed calls.
VISIBLE cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  if (limit == cudaLimitPersistingL2CacheSize) {
    COUNT(refused);
    return cudaErrorNotSupported;
  }
  FORWARD(cudaDeviceSetLimit, limit, value);
}

// Of the driver's functions candidates get the one that writes a tensor map, a struct of the host.
VISIBLE cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                                     unsigned long long flags,
                                                     cudaDriverEntryPointQueryResult* status) {
  if (std::string_view(symbol) != kTensorMapEncoder) {
    COUNT(refused);
    return cudaErrorNotSupported;
  }
  FORWARD(cudaGetDriverEntryPointByVersion, symbol, function, version, flags, status);
}
VISIBLE cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                            cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(symbol, function, CUDART_VERSION, flags, status);
}
VISIBLE CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                        const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                                        const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                        CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                        CUtensorMapFloatOOBfill fill) {
  constexpr unsigned kVersion = 12000;
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  RUNTIME(cudaGetDriverEntryPointByVersion)(kTensorMapEncoder, &function, kVersion, cudaEnableDefault, &found);
  if (function == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function)(
      map, type, rank, address, sizes, strides, box, element_strides, interleave, swizzle, promotion, fill);
}

// Functions that name a kernel or variable by its host symbol: they get the device's object in its place.
VISIBLE cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  FORWARD(cudaFuncSetAttribute, KernelOf(function), attribute, value);
}
VISIBLE cudaError_t cudaFuncSetCacheConfig(const void* function, cudaFuncCache config) {
  FORWARD(cudaFuncSetCacheConfig, KernelOf(function), config);
}
VISIBLE cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int threads,
                                                                  size_t shared) {
  FORWARD(cudaOccupancyMaxActiveBlocksPerMultiprocessor, blocks, KernelOf(function), threads, shared);
}
VISIBLE cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function,
                                                                           int threads, size_t shared, unsigned flags) {
  FORWARD(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, blocks, KernelOf(function), threads, shared, flags);
}
VISIBLE cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  FORWARD(cudaFuncGetAttributes, attributes, KernelOf(function));
}
VISIBLE cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  if (void* variable = VariableOf(symbol)) {
    *address = variable;
    return cudaSuccess;
  }
  FORWARD(cudaGetSymbolAddress, address, symbol);
}
VISIBLE cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* source, size_t bytes, size_t offset,
                                       cudaMemcpyKind kind) {
  if (void* variable = VariableOf(symbol))
    return RUNTIME(cudaMemcpy)(static_cast<char*>(variable) + offset, source, bytes, kind);
  FORWARD(cudaMemcpyToSymbol, symbol, source, bytes, offset, kind);
}
VISIBLE cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* source, size_t bytes, size_t offset,
                                            cudaMemcpyKind kind, cudaStream_t stream) {
  if (void* variable = VariableOf(symbol))
    return RUNTIME(cudaMemcpyAsync)(static_cast<char*>(variable) + offset, source, bytes, kind, stream);
  FORWARD(cudaMemcpyToSymbolAsync, symbol, source, bytes, offset, kind, stream);
}
VISIBLE cudaError_t cudaMemcpyFromSymbol(void* target, const void* symbol, size_t bytes, size_t offset,
                                         cudaMemcpyKind kind) {
  if (void* variable = VariableOf(symbol))
    return RUNTIME(cudaMemcpy)(target, static_cast<char*>(variable) + offset, bytes, kind);
  FORWARD(cudaMemcpyFromSymbol, target, symbol, bytes, offset, kind);
}
VISIBLE cudaError_t cudaMemcpyFromSymbolAsync(void* target, const void* symbol, size_t bytes, size_t offset,
                                              cudaMemcpyKind kind, cudaStream_t stream) {
  if (void* variable = VariableOf(symbol))
    return RUNTIME(cudaMemcpyAsync)(target, static_cast<char*>(variable) + offset, bytes, kind, stream);
  FORWARD(cudaMemcpyFromSymbolAsync, target, symbol, bytes, offset, kind, stream);
}
