#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <type_traits>

#include "evaluator_cuda/device_kernels.h"
#include "judge/inputs/draw.h"

namespace kgrpo::evaluator_cuda {
namespace {

using evaluator::DType;

constexpr int kThreads = 256;
constexpr int kMostBlocks = 132 * 16;
constexpr int64_t kFewestUnits = 4 * kThreads;  // of a block
constexpr int kDtypes = static_cast<int>(evaluator::DType::kUint16) + 1;

// Elements that a thread does at a time.
__host__ __device__ int64_t UnitOf(const DrawTask& task) {
  return task.draw.kind == Draw::Kind::kByte || task.draw.kind == Draw::Kind::kCopy ? 16 : 1;
}
__host__ __device__ int64_t UnitOf(const CompareTask&) { return 1; }

int BlocksFor(int64_t work) {
  return static_cast<int>(std::clamp<int64_t>((work + kThreads - 1) / kThreads, 1, kMostBlocks));
}

__device__ void Store(float* at, double value) { *at = static_cast<float>(value); }
__device__ void Store(double* at, double value) { *at = value; }
__device__ void Store(__half* at, double value) { *at = __double2half(value); }
__device__ void Store(__nv_bfloat16* at, double value) { *at = __double2bfloat16(value); }
template <typename T>
__device__ void Store(T* at, double value) {
  *at = static_cast<T>(value);
}

// Whole numbers that a double would round keep all their digits.
template <typename T>
__device__ void StoreWhole(T* at, int64_t value) {
  if constexpr (std::is_integral_v<T>) {
    *at = static_cast<T>(value);
  } else {
    Store(at, static_cast<double>(value));
  }
}

// Copies the task that this block works on to shared memory, and returns it. `index`: its number.
template <typename Task>
__device__ const Task& TaskOfBlock(const Task* tasks, uint32_t count, uint32_t* index) {
  __shared__ alignas(16) unsigned char copy[sizeof(Task)];
  __shared__ uint32_t found;
  if (threadIdx.x == 0) {
    uint32_t low = 0, high = count;
    while (high - low > 1) {
      const uint32_t middle = (low + high) / 2;
      (tasks[middle].first_block <= blockIdx.x ? low : high) = middle;
    }
    *reinterpret_cast<Task*>(copy) = tasks[low];
    found = low;
  }
  __syncthreads();
  *index = found;
  return *reinterpret_cast<const Task*>(copy);
}

template <typename T>
__device__ void DrawElements(const Draw& draw, evaluator::FloatFormat format, T* target, int64_t first, int64_t end) {
#pragma unroll 1  // 12 dtypes times the kinds, unrolled, take ptxas minutes
  for (int64_t i = first + threadIdx.x; i < end; i += kThreads) {
    const uint64_t bits = evaluator::RandomBits(draw.key, static_cast<uint64_t>(i));
    switch (draw.kind) {
      case Draw::Kind::kBell: Store(target + i, draw.a + draw.b * evaluator::BellCurve(bits)); break;
      case Draw::Kind::kUniform: Store(target + i, draw.a + (draw.b - draw.a) * evaluator::UniformReal(bits)); break;
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
      case Draw::Kind::kConstant: Store(target + i, draw.a); break;
      case Draw::Kind::kWhole:
        StoreWhole(target + i, draw.low + static_cast<int64_t>(__umul64hi(bits, draw.range)));
        break;
      case Draw::Kind::kByte:
      case Draw::Kind::kCopy: break;
    }
  }
}

// Fills bytes [first, end) of the target; `first` is a multiple of 16.
__device__ void FillBytes(const Draw& draw, uint8_t* target, int64_t first, int64_t end) {
  const bool copies = draw.kind == Draw::Kind::kCopy;
  const auto* const source = static_cast<const uint8_t*>(draw.source);
  const uint32_t word = static_cast<uint8_t>(draw.low) * 0x01010101u;
  const int64_t whole = first + (end - first) / 16 * 16;
  for (int64_t i = first + 16 * threadIdx.x; i < whole; i += 16 * kThreads) {
    *reinterpret_cast<uint4*>(target + i) =
        copies ? *reinterpret_cast<const uint4*>(source + i) : make_uint4(word, word, word, word);
  }
  for (int64_t i = whole + threadIdx.x; i < end; i += kThreads)
    target[i] = copies ? source[i] : static_cast<uint8_t>(word);
}

__device__ double Load(const float* at) { return *at; }
__device__ double Load(const double* at) { return *at; }
__device__ double Load(const __half* at) { return __half2float(*at); }
__device__ double Load(const __nv_bfloat16* at) { return __bfloat162float(*at); }
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
__device__ bool IsNear(const T* got, const T* want, const CompareTask& task, double highest) {
  if constexpr (std::is_integral_v<T>) {
    if (*got == *want) return true;
    const uint64_t higher = static_cast<uint64_t>(*got > *want ? *got : *want),
                   lower = static_cast<uint64_t>(*got > *want ? *want : *got);
    return static_cast<double>(higher - lower) <= task.absolute + task.relative * fabs(static_cast<double>(*want));
  } else {
    return Near(Load(got), Load(want), task.relative, task.absolute, highest);
  }
}

// The error in units of the bound: 0 if the element is correct, infinite for a NaN or an infinity on one side only.
template <typename T>
__device__ double ErrorInBounds(const T* got, const T* want, const CompareTask& task, double highest) {
  if (IsNear(got, want, task, highest)) return 0;
  double error = 0;
  if constexpr (std::is_integral_v<T>) {
    error = fabs(static_cast<double>(*got) - static_cast<double>(*want)) /
            (task.absolute + task.relative * fabs(static_cast<double>(*want)));
  } else {
    error = fabs(Load(got) - Load(want)) / (task.absolute + task.relative * fabs(Load(want)));
  }
  return isnan(error) ? INFINITY : error;
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
__device__ void WithType(DType dtype, Body body) {
  switch (dtype) {
    case DType::kFloat32: return body(static_cast<float*>(nullptr));
    case DType::kFloat64: return body(static_cast<double*>(nullptr));
    case DType::kFloat16: return body(static_cast<__half*>(nullptr));
    case DType::kBfloat16: return body(static_cast<__nv_bfloat16*>(nullptr));
    case DType::kInt32: return body(static_cast<int32_t*>(nullptr));
    case DType::kInt64: return body(static_cast<int64_t*>(nullptr));
    case DType::kInt8: return body(static_cast<int8_t*>(nullptr));
    case DType::kUint8:
    case DType::kBool:  // a byte that is 0 or 1
      return body(static_cast<uint8_t*>(nullptr));
    case DType::kUint32: return body(static_cast<uint32_t*>(nullptr));
    case DType::kInt16: return body(static_cast<int16_t*>(nullptr));
    case DType::kUint16: return body(static_cast<uint16_t*>(nullptr));
  }
}

// Properties of floating formats, by dtype: the kernels cannot read the table in dtype.cc.
struct Formats {
  evaluator::FloatFormat format[kDtypes];
  double highest[kDtypes];
};

Formats AllFormats() {
  Formats formats;
  for (int i = 0; i < kDtypes; ++i) {
    const evaluator::DTypeInfo& info = evaluator::Info(static_cast<DType>(i));
    formats.format[i] = {info.digits, info.least_exponent};
    formats.highest[i] = info.highest;
  }
  return formats;
}

__global__ void DrawKernel(const DrawTask* tasks, uint32_t count, int64_t units, Formats formats) {
  uint32_t index = 0;
  const DrawTask& task = TaskOfBlock(tasks, count, &index);
  const int64_t unit = UnitOf(task), first = (blockIdx.x - task.first_block) * units * unit,
                end = min(task.elements, first + units * unit);
  if (unit > 1) return FillBytes(task.draw, static_cast<uint8_t*>(task.target), first, end);
  WithType(task.dtype, [&]<typename T>(T*) {
    DrawElements(task.draw, formats.format[static_cast<int>(task.dtype)], static_cast<T*>(task.target), first, end);
  });
}

__global__ void CompareKernel(const CompareTask* tasks, uint32_t count, int64_t units, Formats formats,
                              unsigned long long* mismatches) {
  uint32_t index = 0;
  const CompareTask& task = TaskOfBlock(tasks, count, &index);
  const int64_t first = (blockIdx.x - task.first_block) * units, end = min(task.elements, first + units);
  unsigned long long differing = 0;
  WithType(task.dtype, [&]<typename T>(T*) {
    const T *const got = static_cast<const T*>(task.got), *const want = static_cast<const T*>(task.want);
    const double highest = formats.highest[static_cast<int>(task.dtype)];
#pragma unroll 2
    for (int64_t i = first + threadIdx.x; i < end; i += kThreads)
      differing += IsNear(got + i, want + i, task, highest) ? 0 : 1;
  });
  AddUp(differing, mismatches + index);
}

// Without `largest`: *result becomes at least the bits of the largest error, which order as the errors do. With it:
// ~i of the first element i with that error.
__global__ void WorstKernel(CompareTask task, double highest, const unsigned long long* largest,
                            unsigned long long* result) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  unsigned long long most = 0;
  WithType(task.dtype, [&]<typename T>(T*) {
    const T *const got = static_cast<const T*>(task.got), *const want = static_cast<const T*>(task.want);
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < task.elements; i += stride) {
      const double error = ErrorInBounds(got + i, want + i, task, highest);
      const auto bits = static_cast<unsigned long long>(__double_as_longlong(error));
      const unsigned long long first = largest != nullptr && bits == *largest ? ~static_cast<unsigned long long>(i) : 0;
      most = max(most, largest == nullptr ? bits : first);
    }
  });
  if (most > 0) atomicMax(result, most);
}

// Divides the tasks among blocks, and copies them to the device. Returns the number of blocks; each does `units` units
// of its task.
template <typename Task>
cudaError_t Divide(std::vector<Task>* tasks, void* table, cudaStream_t stream, uint32_t* blocks, int64_t* units) {
  const auto units_of = [](const Task& task) { return (task.elements + UnitOf(task) - 1) / UnitOf(task); };
  int64_t all = 0;
  for (const Task& task : *tasks) all += units_of(task);
  *units = std::max<int64_t>(kFewestUnits, (all + kMostBlocks - 1) / kMostBlocks);
  *blocks = 0;
  for (Task& task : *tasks) {
    task.first_block = *blocks;
    *blocks += static_cast<uint32_t>((units_of(task) + *units - 1) / *units);
  }
  return cudaMemcpyAsync(table, tasks->data(), tasks->size() * sizeof(Task), cudaMemcpyHostToDevice, stream);
}

}  // namespace

cudaError_t LaunchDraw(std::vector<DrawTask> tasks, void* table, cudaStream_t stream) {
  uint32_t blocks = 0;
  int64_t units = 0;
  if (const cudaError_t status = Divide(&tasks, table, stream, &blocks, &units); status != cudaSuccess) return status;
  if (blocks == 0) return cudaSuccess;
  DrawKernel<<<blocks, kThreads, 0, stream>>>(static_cast<const DrawTask*>(table), static_cast<uint32_t>(tasks.size()),
                                              units, AllFormats());
  return cudaGetLastError();
}

cudaError_t LaunchCompare(std::vector<CompareTask> tasks, void* table, unsigned long long* mismatches,
                          cudaStream_t stream) {
  uint32_t blocks = 0;
  int64_t units = 0;
  if (const cudaError_t status = Divide(&tasks, table, stream, &blocks, &units); status != cudaSuccess) return status;
  const cudaError_t cleared = cudaMemsetAsync(mismatches, 0, tasks.size() * sizeof *mismatches, stream);
  if (cleared != cudaSuccess || blocks == 0) return cleared;
  CompareKernel<<<blocks, kThreads, 0, stream>>>(static_cast<const CompareTask*>(table),
                                                 static_cast<uint32_t>(tasks.size()), units, AllFormats(), mismatches);
  return cudaGetLastError();
}

cudaError_t LaunchWorst(const CompareTask& task, unsigned long long* results, cudaStream_t stream) {
  if (const cudaError_t cleared = cudaMemsetAsync(results, 0, 2 * sizeof *results, stream); cleared != cudaSuccess)
    return cleared;
  const double highest = evaluator::Info(task.dtype).highest;
  WorstKernel<<<BlocksFor(task.elements), kThreads, 0, stream>>>(task, highest, nullptr, results);
  WorstKernel<<<BlocksFor(task.elements), kThreads, 0, stream>>>(task, highest, results, results + 1);
  return cudaGetLastError();
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
