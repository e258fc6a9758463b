// Rotary positions and SwiGLU: kernels.h. A thread takes 16 bytes of its row.
#include <cuda_runtime.h>

#include "policy_qwen/gpu/launch.cuh"
#include "policy_qwen/gpu/vectors.cuh"

namespace kgrpo::policy {
namespace {

constexpr int kThreads = 256;

template <typename T, int N>
__global__ void __launch_bounds__(kThreads)
    RotateKernel(const T* x, int64_t x_stride, T* y, int64_t y_stride, int64_t rows, int64_t heads, int64_t half,
                 const float* __restrict__ cos, const float* __restrict__ sin, float direction) {
  const int64_t parts = half / N;
  const int64_t item = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t row = item / (heads * parts);
  if (row >= rows) return;
  const int64_t head = item / parts % heads, i = item % parts * N;
  const T* from = x + row * x_stride + head * 2 * half + i;
  T* to = y + row * y_stride + head * 2 * half + i;
  auto first = Lanes<T, N>::Load(from), second = Lanes<T, N>::Load(from + half);
#pragma unroll
  for (int j = 0; j < N; ++j) {
    const float c = cos[row * half + i + j], s = direction * sin[row * half + i + j];
    const float a = first.at[j], b = second.at[j];
    first.at[j] = a * c - b * s;
    second.at[j] = b * c + a * s;
  }
  first.Store(to);
  second.Store(to + half);
}

__device__ inline float Sigmoid(float value) { return 1.0f / (1.0f + __expf(-value)); }

template <typename T, int N>
__global__ void __launch_bounds__(kThreads)
    SwiGluKernel(const T* __restrict__ x, int64_t rows, int64_t columns, T* __restrict__ y) {
  const int64_t parts = columns / N;
  const int64_t item = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t row = item / parts, column = item % parts * N;
  if (row >= rows) return;
  auto gate = Lanes<T, N>::Load(x + row * 2 * columns + column);
  const auto up = Lanes<T, N>::Load(x + row * 2 * columns + columns + column);
#pragma unroll
  for (int i = 0; i < N; ++i) gate.at[i] = Rounded<T>(gate.at[i] * Sigmoid(gate.at[i])) * up.at[i];
  gate.Store(y + row * columns + column);
}

// With s the sigmoid of the gate g: d up = dy g s, d gate = dy up s (1 + g (1 - s)).
template <typename T, int N>
__global__ void __launch_bounds__(kThreads)
    SwiGluBackwardKernel(const T* __restrict__ dy, const T* x, int64_t rows, int64_t columns, T* dx) {
  const int64_t parts = columns / N;
  const int64_t item = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t row = item / parts, column = item % parts * N;
  if (row >= rows) return;
  const int64_t at = row * 2 * columns + column;
  auto gate = Lanes<T, N>::Load(x + at), up = Lanes<T, N>::Load(x + at + columns);
  const auto d = Lanes<T, N>::Load(dy + row * columns + column);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const float g = gate.at[i], s = Sigmoid(g);
    gate.at[i] = d.at[i] * up.at[i] * s * (1.0f + g * (1.0f - s));
    up.at[i] = d.at[i] * g * s;
  }
  gate.Store(dx + at);
  up.Store(dx + at + columns);
}

void Rotate(Element type, const void* x, int64_t x_stride, void* y, int64_t y_stride, int64_t rows, int64_t heads,
            int64_t head_size, const float* cos, const float* sin, float direction, GpuStream stream) {
  const int64_t half = head_size / 2;
  ForLanes(type, IsWide(type, x, x_stride, y, y_stride, half), [&]<typename T, int N>() {
    RotateKernel<T, N><<<Blocks(rows * heads * half / N, kThreads), kThreads, 0, StreamOf(stream)>>>(
        static_cast<const T*>(x), x_stride, static_cast<T*>(y), y_stride, rows, heads, half, cos, sin, direction);
  });
}

void SwiGlu(Element type, const void* x, int64_t rows, int64_t columns, void* y, GpuStream stream) {
  ForLanes(type, IsWide(type, x, y, columns), [&]<typename T, int N>() {
    SwiGluKernel<T, N><<<Blocks(rows * columns / N, kThreads), kThreads, 0, StreamOf(stream)>>>(
        static_cast<const T*>(x), rows, columns, static_cast<T*>(y));
  });
}

void SwiGluBackward(Element type, const void* dy, const void* x, int64_t rows, int64_t columns, void* dx,
                    GpuStream stream) {
  ForLanes(type, IsWide(type, dy, x, dx, columns), [&]<typename T, int N>() {
    SwiGluBackwardKernel<T, N><<<Blocks(rows * columns / N, kThreads), kThreads, 0, StreamOf(stream)>>>(
        static_cast<const T*>(dy), static_cast<const T*>(x), rows, columns, static_cast<T*>(dx));
  });
}

}  // namespace

void SetElementwise(GpuKernels& table) {
  KGRPO_SET_KERNEL(table, rotate, Rotate);
  KGRPO_SET_KERNEL(table, swiglu, SwiGlu);
  KGRPO_SET_KERNEL(table, swiglu_backward, SwiGluBackward);
}

}  // namespace kgrpo::policy
