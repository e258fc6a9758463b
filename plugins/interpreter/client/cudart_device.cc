// Our libcudart.so.13, second part: device queries (an H100's numbers), errors, function attributes. See cudart.cc.
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "interpreter/client/connection.h"
#include "interpreter/client/cuda_types.h"
#include "interpreter/client/runtime_state.h"
#include "interpreter/client/stream_capture.h"

using namespace kgrpo::interpreter;  // NOLINT: a C interface in the global namespace over our own types

static_assert(sizeof(CudaDeviceProperties) == 1008);
static_assert(offsetof(CudaDeviceProperties, total_global_memory) == 288);
static_assert(offsetof(CudaDeviceProperties, multiprocessor_count) == 384);
static_assert(offsetof(CudaDeviceProperties, concurrent_kernels) == 560);
static_assert(offsetof(CudaDeviceProperties, async_engine_count) == 584);
static_assert(offsetof(CudaDeviceProperties, shared_memory_per_multiprocessor) == 624);
static_assert(offsetof(CudaDeviceProperties, cooperative_launch) == 668);
static_assert(offsetof(CudaDeviceProperties, shared_memory_per_block_optin) == 672);
static_assert(offsetof(CudaDeviceProperties, max_blocks_per_multiprocessor) == 688);
static_assert(offsetof(CudaDeviceProperties, reserved_shared_memory_per_block) == 696);
static_assert(sizeof(CudaFunctionAttributes) == 144);

namespace {

struct ErrorText {
  int error;
  const char* name;
  const char* text;
};

constexpr ErrorText kErrors[] = {
    {kCudaSuccess, "cudaSuccess", "no error"},
    {kCudaInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {kCudaMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {kCudaInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {kCudaInvalidSymbol, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {kCudaInvalidPitchValue, "cudaErrorInvalidPitchValue", "invalid pitch argument"},
    {kCudaInvalidChannelDescriptor, "cudaErrorInvalidChannelDescriptor", "invalid channel descriptor"},
    {kCudaInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {kCudaInvalidFilterSetting, "cudaErrorInvalidFilterSetting", "linear filtering not supported for non-float type"},
    {kCudaInvalidNormSetting, "cudaErrorInvalidNormSetting",
     "read as normalized float not supported for 32-bit non float type"},
    {kCudaInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {kCudaInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {kCudaInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {kCudaIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {kCudaLaunchOutOfResources, "cudaErrorLaunchOutOfResources", "too many resources requested for launch"},
    {kCudaLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {kCudaIllegalState, "cudaErrorIllegalState", "the operation cannot be performed in the present state"},
    {kCudaStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {kCudaStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {kCudaStreamCaptureMerge, "cudaErrorStreamCaptureMerge",
     "operation would result in a merge of separate capture sequences"},
    {kCudaStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
     "capture was not ended in the same stream as it began"},
    {kCudaStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
    {kCudaStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {kCudaStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {kCudaCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {kCudaGraphExecUpdateFailure, "cudaErrorGraphExecUpdateFailure",
     "the graph update was not performed because it included changes which violated constraints specific to "
     "instantiated graph update"},
    {kCudaNotSupported, "cudaErrorNotSupported", "operation not supported"},
};

const ErrorText* FindError(int error) {
  for (const ErrorText& entry : kErrors) {
    if (entry.error == error) return &entry;
  }
  return nullptr;
}

// cudaDeviceAttr numbers with an H100's values (NVIDIA H100 Tensor Core GPU data sheet; CUDA programming guide, compute
// capability 9.0).
struct Attribute {
  int number;
  int value;
};

constexpr Attribute kAttributes[] = {
    {1, 1024},         // MaxThreadsPerBlock
    {2, 1024},         // MaxBlockDimX
    {3, 1024},         // MaxBlockDimY
    {4, 64},           // MaxBlockDimZ
    {5, 2147483647},   // MaxGridDimX
    {6, 65535},        // MaxGridDimY
    {7, 65535},        // MaxGridDimZ
    {8, 49152},        // MaxSharedMemoryPerBlock
    {9, 65536},        // TotalConstantMemory
    {10, 32},          // WarpSize
    {11, 2147483647},  // MaxPitch
    {12, 65536},       // MaxRegistersPerBlock
    {13, 1980000},     // ClockRate, kHz
    {14, 512},         // TextureAlignment
    {16, 132},         // MultiProcessorCount
    {31, 1},           // ConcurrentKernels
    {36, 2619000},     // MemoryClockRate, kHz
    {37, 5120},        // GlobalMemoryBusWidth
    {38, 52428800},    // L2CacheSize
    {39, 2048},        // MaxThreadsPerMultiProcessor
    {41, 1},           // UnifiedAddressing
    {51, 32},          // TexturePitchAlignment
    {75, 9},           // ComputeCapabilityMajor
    {76, 0},           // ComputeCapabilityMinor
    {79, 1},           // GlobalL1CacheSupported
    {80, 1},           // LocalL1CacheSupported
    {81, 233472},      // MaxSharedMemoryPerMultiprocessor
    {82, 65536},       // MaxRegistersPerMultiprocessor
    {95, 1},           // CooperativeLaunch
    {97, 232448},      // MaxSharedMemoryPerBlockOptin
    {106, 32},         // MaxBlocksPerMultiprocessor
    {111, 1024},       // ReservedSharedMemoryPerBlock
    {115, 1},          // MemoryPoolsSupported
};

int AttributeValue(int number) {
  for (const Attribute& attribute : kAttributes) {
    if (attribute.number == number) return attribute.value;
  }
  return 0;
}

}  // namespace

extern "C" {

const char* cudaGetErrorName(int error) {
  const ErrorText* entry = FindError(error);
  return entry != nullptr ? entry->name : "cudaErrorUnknown";
}

const char* cudaGetErrorString(int error) {
  const ErrorText* entry = FindError(error);
  return entry != nullptr ? entry->text : "unknown error";
}

int cudaGetLastError() { return TakeError(); }
int cudaPeekAtLastError() { return PeekError(); }

int cudaGetDeviceCount(int* count) {
  *count = 1;
  return kCudaSuccess;
}

int cudaGetDevice(int* device) {
  *device = 0;
  return kCudaSuccess;
}

int cudaSetDevice(int device) { return device == 0 ? kCudaSuccess : SetError(kCudaInvalidDevice); }
int cudaDeviceSynchronize() { return Spent(__func__, Waited(WaitForDevice())); }
int cudaDeviceReset() { return kCudaSuccess; }
int cudaDeviceSetCacheConfig(int) { return kCudaSuccess; }
int cudaDeviceSetLimit(int, size_t) { return SetError(kCudaNotSupported); }

int cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return kCudaSuccess;
}

int cudaDriverGetVersion(int* version) {
  *version = 13000;
  return kCudaSuccess;
}

int cudaMemGetInfo(size_t* available, size_t* total) {
  Spend(__func__);
  *total = size_t{80} << 30;
  *available = size_t{79} << 30;
  return kCudaSuccess;
}

int cudaDeviceGetAttribute(int* value, int attribute, int device) {
  if (device != 0) return SetError(kCudaInvalidDevice);
  *value = AttributeValue(attribute);
  return kCudaSuccess;
}

int cudaGetDeviceProperties(CudaDeviceProperties* properties, int device) {
  if (device != 0) return SetError(kCudaInvalidDevice);
  std::memset(properties, 0, sizeof *properties);
  std::snprintf(properties->name, sizeof properties->name, "NVIDIA H100 80GB HBM3");
  properties->total_global_memory = size_t{80} << 30;
  properties->shared_memory_per_block = 49152;
  properties->registers_per_block = 65536;
  properties->warp_size = 32;
  properties->memory_pitch = 2147483647;
  properties->max_threads_per_block = 1024;
  for (int i = 0; i < 3; ++i) {
    properties->max_threads_dim[i] = AttributeValue(2 + i);
    properties->max_grid_size[i] = AttributeValue(5 + i);
  }
  properties->total_constant_memory = 65536;
  properties->major = 9;
  properties->minor = 0;
  properties->texture_alignment = 512;
  properties->texture_pitch_alignment = 32;
  properties->multiprocessor_count = 132;
  properties->concurrent_kernels = 1;
  properties->async_engine_count = 3;
  properties->unified_addressing = 1;
  properties->memory_bus_width = 5120;
  properties->l2_cache_size = 52428800;
  properties->max_threads_per_multiprocessor = 2048;
  properties->global_l1_cache_supported = 1;
  properties->local_l1_cache_supported = 1;
  properties->shared_memory_per_multiprocessor = 233472;
  properties->registers_per_multiprocessor = 65536;
  properties->cooperative_launch = 1;
  properties->shared_memory_per_block_optin = 232448;
  properties->max_blocks_per_multiprocessor = 32;
  properties->reserved_shared_memory_per_block = 1024;
  return kCudaSuccess;
}

int cudaFuncGetAttributes(CudaFunctionAttributes* attributes, const void* function) {
  Spend(__func__);
  KernelReply kernel = {};
  int shared_limit = 0;
  const int error = KernelAttributes(function, &kernel, &shared_limit);
  if (error != kCudaSuccess) return SetError(error);
  std::memset(attributes, 0, sizeof *attributes);
  attributes->shared_size_bytes = kernel.static_shared_bytes;
  attributes->local_size_bytes = kernel.local_bytes;
  attributes->max_threads_per_block = kernel.max_threads != 0 ? static_cast<int>(kernel.max_threads) : 1024;
  attributes->registers = static_cast<int>(kernel.registers);
  attributes->ptx_version = 90;
  attributes->binary_version = 90;
  attributes->max_dynamic_shared_size_bytes = shared_limit;
  return kCudaSuccess;
}

int cudaFuncSetAttribute(const void* function, int attribute, int value) {
  Spend(__func__);
  if (attribute == 8) return SetError(SetSharedLimit(function, value));  // MaxDynamicSharedMemorySize
  if (attribute == 9) return kCudaSuccess;                               // PreferredSharedMemoryCarveout: a hint
  return SetError(kCudaNotSupported);
}

int cudaFuncSetCacheConfig(const void*, int) { return kCudaSuccess; }

int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function, int threads,
                                                           size_t shared, unsigned) {
  return Spent(__func__, Occupancy(function, threads, shared, blocks));
}

int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int threads, size_t shared) {
  return Spent(__func__, Occupancy(function, threads, shared, blocks));
}

}  // extern "C"
