#include <cuda_fp16.h>
#include <mma.h>

#include "evaluator_cuda/ceiling_kernels.h"

namespace kgrpo::evaluator_cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kChains = 8;    // independent sums a thread, so that no latency shows
constexpr int kMatrices = 4;  // the same of a warp: sums of 16 x 16 elements
constexpr int kTile = 16;

template <typename T>
__global__ void MultiplyAddKernel(int rounds, T factor, float* sink) {
  T sums[kChains];
  for (int c = 0; c < kChains; ++c) sums[c] = static_cast<T>(threadIdx.x + c);
  for (int r = 0; r < rounds; ++r) {
#pragma unroll
    for (int c = 0; c < kChains; ++c) sums[c] = sums[c] * factor + T(1);
  }
  T total = 0;
  for (int c = 0; c < kChains; ++c) total += sums[c];
  if (total == T(-1)) *sink = static_cast<float>(total);
}

// The factors affect the time only through the power that they take: they are small and differ, as in a real product.
template <typename Sum>
__global__ void TensorKernel(int rounds, float* sink) {
  namespace wmma = nvcuda::wmma;
  wmma::fragment<wmma::matrix_a, kTile, kTile, kTile, __half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, kTile, kTile, kTile, __half, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, kTile, kTile, kTile, Sum> sums[kMatrices];
  for (int i = 0; i < left.num_elements; ++i) left.x[i] = __float2half(0.001f * static_cast<float>(threadIdx.x % 7));
  for (int i = 0; i < right.num_elements; ++i) right.x[i] = __float2half(0.001f * static_cast<float>(threadIdx.x % 5));
#pragma unroll
  for (int m = 0; m < kMatrices; ++m) wmma::fill_fragment(sums[m], static_cast<Sum>(0.0f));
  for (int r = 0; r < rounds; ++r) {
#pragma unroll
    for (int m = 0; m < kMatrices; ++m) wmma::mma_sync(sums[m], left, right, sums[m]);
  }
  float total = 0;
#pragma unroll
  for (int m = 0; m < kMatrices; ++m) {
    for (int i = 0; i < sums[m].num_elements; ++i) total += static_cast<float>(sums[m].x[i]);
  }
  if (total == -1.0f) *sink = total;
}

template <typename Sum>
cudaError_t LaunchTensor(int multiprocessors, int rounds, float* sink, double* operations, cudaStream_t stream) {
  const int blocks = multiprocessors * 4;
  TensorKernel<Sum><<<blocks, kThreads, 0, stream>>>(rounds, sink);
  *operations = 2.0 * kTile * kTile * kTile * kMatrices * rounds * blocks * (kThreads / 32);
  return cudaGetLastError();
}

template <typename T>
cudaError_t LaunchMultiplyAddOf(int multiprocessors, int rounds, float* sink, double* operations, cudaStream_t stream) {
  const int blocks = multiprocessors * 8;
  MultiplyAddKernel<T><<<blocks, kThreads, 0, stream>>>(rounds, T(0.5), sink);
  *operations = 2.0 * kChains * rounds * blocks * kThreads;
  return cudaGetLastError();
}

}  // namespace

cudaError_t LaunchMultiplyAdd(int multiprocessors, int rounds, float* sink, double* operations, cudaStream_t stream) {
  return LaunchMultiplyAddOf<float>(multiprocessors, rounds, sink, operations, stream);
}

cudaError_t LaunchMultiplyAdd64(int multiprocessors, int rounds, float* sink, double* operations, cudaStream_t stream) {
  return LaunchMultiplyAddOf<double>(multiprocessors, rounds, sink, operations, stream);
}

cudaError_t LaunchTensorHalf(int multiprocessors, int rounds, float* sink, double* operations, cudaStream_t stream) {
  return LaunchTensor<__half>(multiprocessors, rounds, sink, operations, stream);
}

cudaError_t LaunchTensorFloat(int multiprocessors, int rounds, float* sink, double* operations, cudaStream_t stream) {
  return LaunchTensor<float>(multiprocessors, rounds, sink, operations, stream);
}

}  // namespace kgrpo::evaluator_cuda
