// The few types and numbers of the CUDA runtime's binary interface that our libcudart.so.13 implements, so that
// building it needs no CUDA toolkit. tests/evaluator holds them against the toolkit's headers.
#pragma once

#include <cstddef>

namespace kgrpo::interpreter {

enum CudaError : int {
  kCudaSuccess = 0,
  kCudaInvalidValue = 1,
  kCudaMemoryAllocation = 2,
  kCudaInvalidConfiguration = 9,
  kCudaInvalidPitchValue = 12,
  kCudaInvalidSymbol = 13,
  kCudaInvalidChannelDescriptor = 20,
  kCudaInvalidMemcpyDirection = 21,
  kCudaInvalidFilterSetting = 26,
  kCudaInvalidNormSetting = 27,
  kCudaInvalidDeviceFunction = 98,
  kCudaInvalidDevice = 101,
  kCudaInvalidResourceHandle = 400,
  kCudaIllegalState = 401,
  kCudaIllegalAddress = 700,
  kCudaLaunchOutOfResources = 701,
  kCudaLaunchFailure = 719,
  kCudaNotSupported = 801,
  kCudaStreamCaptureUnsupported = 900,
  kCudaStreamCaptureInvalidated = 901,
  kCudaStreamCaptureMerge = 902,
  kCudaStreamCaptureUnmatched = 903,
  kCudaStreamCaptureUnjoined = 904,
  kCudaStreamCaptureIsolation = 905,
  kCudaStreamCaptureImplicit = 906,
  kCudaCapturedEvent = 907,
  kCudaGraphExecUpdateFailure = 910,
  kCudaUnknown = 999,
};

struct CudaDim3 {
  unsigned x, y, z;
};

// cudaLaunchAttribute; the value as far as it is read.
struct CudaLaunchAttribute {
  int id;
  int padding;
  unsigned value[16];
};

// cudaLaunchConfig_t
struct CudaLaunchConfig {
  CudaDim3 grid, block;
  size_t shared_bytes;
  void* stream;
  const CudaLaunchAttribute* attributes;
  unsigned attribute_count;
};

// cudaKernelNodeParams
struct CudaKernelNodeParameters {
  void* function;
  CudaDim3 grid, block;
  unsigned shared_bytes;
  void** arguments;
  void** extra;
};

// cudaGraphExecUpdateResultInfo
struct CudaGraphUpdateResult {
  int result;
  void* error_node;
  void* error_from_node;
};

// cudaChannelFormatDesc; kind: a cudaChannelFormatKind.
struct CudaChannelFormat {
  int bits[4];
  int kind;
};

// cudaExtent, cudaPos
struct CudaExtent {
  size_t width, height, depth;
};

// cudaPitchedPtr
struct CudaPitchedPointer {
  void* pointer;
  size_t pitch, width, height;
};

// cudaMemcpy3DParms
struct CudaCopy3D {
  void* source_array;
  CudaExtent source_position;
  CudaPitchedPointer source;
  void* target_array;
  CudaExtent target_position;
  CudaPitchedPointer target;
  CudaExtent extent;
  int kind;
};

// cudaResourceDesc; type: a cudaResourceType.
struct CudaResource {
  int type;
  union {
    void* array;
    struct {
      void* pointer;
      CudaChannelFormat format;
      size_t bytes;
    } linear;
    struct {
      void* pointer;
      CudaChannelFormat format;
      size_t width, height, pitch;
    } pitched;
    int reserved[32];
  };
  unsigned flags;
};

// cudaTextureDesc
struct CudaTexture {
  int address_mode[3];
  int filter_mode;
  int read_mode;
  int srgb;
  unsigned border[4];  // bits of floats
  int normalized_coordinates;
  unsigned max_anisotropy;
  int mipmap_filter_mode;
  float mipmap_level_bias, min_mipmap_level, max_mipmap_level;
  int no_trilinear_optimisation;
  int seamless_cubemap;
};

// cudaDeviceProp of CUDA 13 as far as it is filled; the offsets are static-asserted in cudart_device.cc.
struct CudaDeviceProperties {
  char name[256];
  char uuid[16];
  char luid[8];
  unsigned luid_device_node_mask;
  size_t total_global_memory;
  size_t shared_memory_per_block;
  int registers_per_block;
  int warp_size;
  size_t memory_pitch;
  int max_threads_per_block;
  int max_threads_dim[3];
  int max_grid_size[3];
  size_t total_constant_memory;
  int major;
  int minor;
  size_t texture_alignment;
  size_t texture_pitch_alignment;
  int multiprocessor_count;
  int integrated;
  char unused_2[560 - 392];
  int concurrent_kernels;
  int ecc_enabled;
  char unused_3[584 - 568];
  int async_engine_count;
  int unified_addressing;
  int memory_bus_width;
  int l2_cache_size;
  int persisting_l2_cache_max_size;
  int max_threads_per_multiprocessor;
  int stream_priorities_supported;
  int global_l1_cache_supported;
  int local_l1_cache_supported;
  size_t shared_memory_per_multiprocessor;
  int registers_per_multiprocessor;
  char unused_4[668 - 636];
  int cooperative_launch;
  size_t shared_memory_per_block_optin;
  char unused_5[688 - 680];
  int max_blocks_per_multiprocessor;
  char unused_6[696 - 692];
  size_t reserved_shared_memory_per_block;
  char unused_7[1008 - 704];
};

// cudaFuncAttributes as far as it is filled.
struct CudaFunctionAttributes {
  size_t shared_size_bytes;
  size_t constant_size_bytes;
  size_t local_size_bytes;
  int max_threads_per_block;
  int registers;
  int ptx_version;
  int binary_version;
  int cache_mode_ca;
  int max_dynamic_shared_size_bytes;
  int preferred_shared_carveout;
  char unused[144 - 52];
};

}  // namespace kgrpo::interpreter
