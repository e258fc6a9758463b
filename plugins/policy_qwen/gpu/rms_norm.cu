// RMSNorm and its derivatives: kernels.h. A warp takes a row; what it reads twice comes from the first-level cache.
#include <cuda_runtime.h>

#include "policy_qwen/gpu/launch.cuh"
#include "policy_qwen/gpu/vectors.cuh"

namespace kgrpo::policy {
namespace {

constexpr int kWarpsABlock = 4;

template <typename T, int N>
__global__ void __launch_bounds__(32 * kWarpsABlock)
    RmsNormKernel(const T* __restrict__ x, int64_t x_stride, const T* __restrict__ weight, float epsilon, int64_t rows,
                  int64_t columns, T* __restrict__ y, float* __restrict__ scale) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarpsABlock + threadIdx.x / 32;
  if (row >= rows) return;
  const int lane = threadIdx.x % 32;
  const T* from = x + row * x_stride;
  float squares = 0;
  for (int64_t column = lane * N; column < columns; column += 32 * N) {
    const auto lanes = Lanes<T, N>::Load(from + column);
#pragma unroll
    for (int i = 0; i < N; ++i) squares = fmaf(lanes.at[i], lanes.at[i], squares);
  }
  const float r = rsqrtf(WarpSum(squares) / static_cast<float>(columns) + epsilon);
  if (lane == 0) scale[row] = r;
  T* to = y + row * columns;
  for (int64_t column = lane * N; column < columns; column += 32 * N) {
    auto lanes = Lanes<T, N>::Load(from + column);
    const auto w = Lanes<T, N>::Load(weight + column);
#pragma unroll
    for (int i = 0; i < N; ++i) lanes.at[i] = Rounded<T>(lanes.at[i] * r) * w.at[i];
    lanes.Store(to + column);
  }
}

template <typename T, int N>
__global__ void __launch_bounds__(32 * kWarpsABlock)
    RmsNormBackwardKernel(const T* __restrict__ dy, const T* __restrict__ x, int64_t x_stride,
                          const T* __restrict__ weight, const float* __restrict__ scale, const T* add, int64_t rows,
                          int64_t columns, T* dx) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarpsABlock + threadIdx.x / 32;
  if (row >= rows) return;
  const int lane = threadIdx.x % 32;
  const float r = scale[row];
  float products = 0;
  for (int64_t column = lane * N; column < columns; column += 32 * N) {
    const auto d = Lanes<T, N>::Load(dy + row * columns + column);
    const auto in = Lanes<T, N>::Load(x + row * x_stride + column);
    const auto w = Lanes<T, N>::Load(weight + column);
#pragma unroll
    for (int i = 0; i < N; ++i) products = fmaf(d.at[i] * w.at[i], in.at[i] * r, products);
  }
  const float mean = WarpSum(products) / static_cast<float>(columns);
  for (int64_t column = lane * N; column < columns; column += 32 * N) {
    auto d = Lanes<T, N>::Load(dy + row * columns + column);
    const auto in = Lanes<T, N>::Load(x + row * x_stride + column);
    const auto w = Lanes<T, N>::Load(weight + column);
#pragma unroll
    for (int i = 0; i < N; ++i) d.at[i] = r * (d.at[i] * w.at[i] - in.at[i] * r * mean);
    if (add != nullptr) {
      const auto more = Lanes<T, N>::Load(add + row * columns + column);
#pragma unroll
      for (int i = 0; i < N; ++i) d.at[i] += more.at[i];
    }
    d.Store(dx + row * columns + column);
  }
}

// A block sums a slice of the rows for 32 columns: 8 threads a column, whose sums are added in order.
constexpr int kColumnsABlock = 32;
constexpr int kRowsAtATime = 8;

template <typename T>
__global__ void __launch_bounds__(kColumnsABlock* kRowsAtATime)
    PartialWeightGradientKernel(const T* __restrict__ dy, const T* __restrict__ x, int64_t x_stride,
                                const float* __restrict__ scale, int64_t rows, int64_t columns,
                                float* __restrict__ partial) {
  __shared__ float sums[kRowsAtATime][kColumnsABlock];
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kColumnsABlock + threadIdx.x;
  const int64_t slice = blockIdx.y;
  const int64_t begin = rows * slice / kNormSlices, end = rows * (slice + 1) / kNormSlices;
  float sum = 0;
  if (column < columns) {
    for (int64_t row = begin + threadIdx.y; row < end; row += kRowsAtATime) {
      sum = fmaf(ToFloat(dy[row * columns + column]), ToFloat(x[row * x_stride + column]) * scale[row], sum);
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  for (int i = 1; i < kRowsAtATime; ++i) sum += sums[i][threadIdx.x];
  partial[slice * columns + column] = sum;
}

__global__ void SumSlicesKernel(const float* __restrict__ partial, int64_t columns, float* __restrict__ gradient) {
  const int64_t column = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  float sum = 0;
  for (int64_t slice = 0; slice < kNormSlices; ++slice) sum += partial[slice * columns + column];
  gradient[column] += sum;
}

void RmsNorm(Element type, const void* x, int64_t x_stride, const void* weight, float epsilon, int64_t rows,
             int64_t columns, void* y, float* scale, GpuStream stream) {
  ForLanes(type, IsWide(type, x, x_stride, weight, columns, y), [&]<typename T, int N>() {
    RmsNormKernel<T, N><<<Blocks(rows, kWarpsABlock), 32 * kWarpsABlock, 0, StreamOf(stream)>>>(
        static_cast<const T*>(x), x_stride, static_cast<const T*>(weight), epsilon, rows, columns, static_cast<T*>(y),
        scale);
  });
}

void RmsNormBackward(Element type, const void* dy, const void* x, int64_t x_stride, const void* weight,
                     const float* scale, const void* add, int64_t rows, int64_t columns, void* dx, GpuStream stream) {
  ForLanes(type, IsWide(type, dy, x, x_stride, weight, add, columns, dx), [&]<typename T, int N>() {
    RmsNormBackwardKernel<T, N><<<Blocks(rows, kWarpsABlock), 32 * kWarpsABlock, 0, StreamOf(stream)>>>(
        static_cast<const T*>(dy), static_cast<const T*>(x), x_stride, static_cast<const T*>(weight), scale,
        static_cast<const T*>(add), rows, columns, static_cast<T*>(dx));
  });
}

void RmsNormWeightGradient(Element type, const void* dy, const void* x, int64_t x_stride, const float* scale,
                           int64_t rows, int64_t columns, float* partial, float* weight_gradient, GpuStream stream) {
  const auto queue = StreamOf(stream);
  const dim3 grid(Blocks(columns, kColumnsABlock), kNormSlices), block(kColumnsABlock, kRowsAtATime);
  ForElement(type, [&]<typename T>() {
    PartialWeightGradientKernel<T><<<grid, block, 0, queue>>>(static_cast<const T*>(dy), static_cast<const T*>(x),
                                                              x_stride, scale, rows, columns, partial);
  });
  constexpr int kThreads = 128;
  SumSlicesKernel<<<Blocks(columns, kThreads), kThreads, 0, queue>>>(partial, columns, weight_gradient);
}

}  // namespace

void SetRmsNorm(GpuKernels& table) {
  KGRPO_SET_KERNEL(table, rms_norm, RmsNorm);
  KGRPO_SET_KERNEL(table, rms_norm_backward, RmsNormBackward);
  KGRPO_SET_KERNEL(table, rms_norm_weight_gradient, RmsNormWeightGradient);
}

}  // namespace kgrpo::policy
