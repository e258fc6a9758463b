#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

#include "evaluator_cuda/device_kernels.h"
#include "evaluator_shared/draw.h"

namespace kgrpo::evaluator_cuda {
namespace {

using evaluator::DType;

constexpr int kThreads = 256;
constexpr int kMostBlocks = 132 * 16;

int BlocksFor(int64_t work) {
  return static_cast<int>(std::clamp<int64_t>((work + kThreads - 1) / kThreads, 1, kMostBlocks));
}

__device__ void Store(float* at, double value) {
  *at = static_cast<float>(value);
}
__device__ void Store(double* at, double value) {
  *at = value;
}
__device__ void Store(__half* at, double value) {
  *at = __double2half(value);
}
__device__ void Store(__nv_bfloat16* at, double value) {
  *at = __double2bfloat16(value);
}
template <typename T>
__device__ void Store(T* at, double value) {
  *at = static_cast<T>(value);
}

template <typename T>
__global__ void DrawKernel(Draw draw, evaluator::FloatFormat format, T* target, int64_t elements) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < elements; i += stride) {
    const uint64_t bits = evaluator::RandomBits(draw.key, static_cast<uint64_t>(i));
    switch (draw.kind) {
      case Draw::Kind::kBell:
        Store(target + i, draw.a + draw.b * evaluator::BellCurve(bits));
        break;
      case Draw::Kind::kUniform:
        Store(target + i, draw.a + (draw.b - draw.a) * evaluator::UniformReal(bits));
        break;
      case Draw::Kind::kSparse: {
        const double place = evaluator::UniformReal(evaluator::RandomBits(draw.chosen, static_cast<uint64_t>(i)));
        Store(target + i, place < draw.a ? evaluator::BellCurve(bits) : 0.0);
        break;
      }
      case Draw::Kind::kDenormals: {
        const double place = evaluator::UniformReal(evaluator::RandomBits(draw.chosen, static_cast<uint64_t>(i)));
        Store(target + i, place < draw.a ? evaluator::BellCurve(bits) : evaluator::TinyValue(bits, format));
        break;
      }
      case Draw::Kind::kExtremes:
        Store(target + i, evaluator::ExtremeValue(bits, format, draw.infinities, draw.nans));
        break;
      case Draw::Kind::kConstant:
        Store(target + i, draw.a);
        break;
      case Draw::Kind::kWhole:
        Store(target + i, static_cast<double>(draw.low + static_cast<int64_t>(__umul64hi(bits, draw.range))));
        break;
    }
  }
}

__device__ double Load(const float* at) {
  return *at;
}
__device__ double Load(const double* at) {
  return *at;
}
__device__ double Load(const __half* at) {
  return __half2float(*at);
}
__device__ double Load(const __nv_bfloat16* at) {
  return __bfloat162float(*at);
}
template <typename T>
__device__ double Load(const T* at) {
  return static_cast<double>(*at);
}

__device__ void AddUp(unsigned long long count, unsigned long long* total) {
  for (int offset = 16; offset > 0; offset /= 2) count += __shfl_down_sync(0xffffffffu, count, offset);
  if (threadIdx.x % 32 == 0 && count > 0) atomicAdd(total, count);
}

// `highest`: the largest finite number of the format.
__device__ bool Near(double got, double want, double relative, double absolute, double highest) {
  if (got == want || (isnan(got) && isnan(want))) return true;
  if (isinf(got) != isinf(want)) {  // correct where the finite value is within the relative bound of overflowing
    return fabs(isinf(got) ? want : got) * (1 + relative) >= highest && (got > 0) == (want > 0);
  }
  return fabs(got - want) <= absolute + relative * fabs(want) && !isinf(want);
}

template <typename T>
__global__ void CompareKernel(const T* got, const T* want, int64_t elements, double relative, double absolute,
                              double highest, unsigned long long* mismatches) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  unsigned long long count = 0;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < elements; i += stride) {
    count += Near(Load(got + i), Load(want + i), relative, absolute, highest) ? 0 : 1;
  }
  AddUp(count, mismatches);
}

__global__ void CountOtherKernel(const uint4* memory, uint64_t words, uint32_t value, unsigned long long* changed) {
  const uint64_t stride = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  unsigned long long count = 0;
  const auto bytes_off = [value](uint32_t word) { return static_cast<unsigned>(__popc(__vcmpne4(word, value))) / 8; };
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < words; i += stride) {
    const uint4 word = memory[i];
    count += bytes_off(word.x) + bytes_off(word.y) + bytes_off(word.z) + bytes_off(word.w);
  }
  AddUp(count, changed);
}

__global__ void GatherKernel(const Place* places, uint8_t* out) {
  const Place place = places[blockIdx.x];
  out[blockIdx.x * kPeekBytes + threadIdx.x] = threadIdx.x < place.bytes ? place.at[threadIdx.x] : 0;
}

__global__ void ReadKernel(const uint4* memory, uint64_t words, unsigned long long* sink) {
  const uint64_t stride = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  uint32_t sum = 0;
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < words; i += stride) {
    const uint4 word = memory[i];
    sum ^= word.x ^ word.y ^ word.z ^ word.w;
  }
  if (sum == 0x12345678u) *sink = sum;  // so that the reads are not left out
}

// Calls `body` with a null pointer of the dtype's type.
template <typename Body>
cudaError_t WithType(DType dtype, Body body) {
  switch (dtype) {
    case DType::kFloat32:
      body(static_cast<float*>(nullptr));
      break;
    case DType::kFloat64:
      body(static_cast<double*>(nullptr));
      break;
    case DType::kFloat16:
      body(static_cast<__half*>(nullptr));
      break;
    case DType::kBfloat16:
      body(static_cast<__nv_bfloat16*>(nullptr));
      break;
    case DType::kInt32:
      body(static_cast<int32_t*>(nullptr));
      break;
    case DType::kInt64:
      body(static_cast<int64_t*>(nullptr));
      break;
    case DType::kUint8:
      body(static_cast<uint8_t*>(nullptr));
      break;
    case DType::kInt8:
      body(static_cast<int8_t*>(nullptr));
      break;
    case DType::kBool:  // a byte that is 0 or 1
      body(static_cast<uint8_t*>(nullptr));
      break;
    case DType::kUint32:
      body(static_cast<uint32_t*>(nullptr));
      break;
  }
  return cudaGetLastError();
}

}  // namespace

cudaError_t LaunchDraw(const Draw& draw, DType dtype, void* target, int64_t elements, cudaStream_t stream) {
  return WithType(dtype, [&]<typename T>(T*) {
    const evaluator::FloatFormat format = {evaluator::Info(dtype).digits, evaluator::Info(dtype).least_exponent};
    DrawKernel<<<BlocksFor(elements), kThreads, 0, stream>>>(draw, format, static_cast<T*>(target), elements);
  });
}

cudaError_t LaunchCompare(DType dtype, const void* got, const void* want, int64_t elements, double relative,
                          double absolute, unsigned long long* mismatches, cudaStream_t stream) {
  return WithType(dtype, [&]<typename T>(T*) {
    CompareKernel<<<BlocksFor(elements), kThreads, 0, stream>>>(static_cast<const T*>(got), static_cast<const T*>(want),
                                                                elements, relative, absolute,
                                                                evaluator::Info(dtype).highest, mismatches);
  });
}

cudaError_t LaunchCountOther(const void* memory, uint64_t bytes, uint8_t value, unsigned long long* changed,
                             cudaStream_t stream) {
  const uint64_t words = bytes / sizeof(uint4);
  CountOtherKernel<<<BlocksFor(static_cast<int64_t>(words)), kThreads, 0, stream>>>(
      static_cast<const uint4*>(memory), words, value * 0x01010101u, changed);
  return cudaGetLastError();
}

cudaError_t LaunchGather(const Place* places, uint32_t count, uint8_t* out, cudaStream_t stream) {
  GatherKernel<<<count, kPeekBytes, 0, stream>>>(places, out);
  return cudaGetLastError();
}

cudaError_t LaunchRead(const void* memory, uint64_t bytes, unsigned long long* sink, cudaStream_t stream) {
  const uint64_t words = bytes / sizeof(uint4);
  ReadKernel<<<kMostBlocks, kThreads, 0, stream>>>(static_cast<const uint4*>(memory), words, sink);
  return cudaGetLastError();
}

}  // namespace kgrpo::evaluator_cuda
