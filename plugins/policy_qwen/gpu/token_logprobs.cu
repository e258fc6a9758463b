// Log-probabilities of given tokens from logits, and the derivative by the logits: kernels.h. A block takes a row and
// reads it once: the running maximum and the sums relative to it (Milakov and Gimelshein, 2018).
#include <cuda_runtime.h>

#include <cmath>

#include "policy_qwen/gpu/launch.cuh"
#include "policy_qwen/gpu/vectors.cuh"

namespace kgrpo::policy {
namespace {

constexpr int kThreads = 512;

// Of a set of logits z: the maximum m, sum(exp(z - m)), and sum(exp(z - m) (z - m)) for the entropy.
struct Softmax {
  float maximum = -INFINITY;
  float sum = 0;
  float weighted = 0;

  __device__ void Rebase(float to) {
    if (maximum == to) return;
    const float change = maximum - to;  // -inf for an empty set, whose sums are 0
    const float factor = __expf(change);
    weighted = sum == 0 ? 0 : factor * (weighted + change * sum);
    sum *= factor;
    maximum = to;
  }

  __device__ void Add(float z) {
    if (z == -INFINITY) return;  // adds nothing, and has no distance
    if (z > maximum) Rebase(z);
    const float below = z - maximum;
    const float e = __expf(below);
    sum += e;
    weighted += e * below;
  }

  __device__ void Merge(Softmax other) {
    const float greater = fmaxf(maximum, other.maximum);
    Rebase(greater);
    other.Rebase(greater);
    sum += other.sum;
    weighted += other.weighted;
  }
};

__device__ inline Softmax Shuffled(const Softmax& from, int offset) {
  Softmax other;
  other.maximum = __shfl_xor_sync(0xffffffffu, from.maximum, offset);
  other.sum = __shfl_xor_sync(0xffffffffu, from.sum, offset);
  other.weighted = __shfl_xor_sync(0xffffffffu, from.weighted, offset);
  return other;
}

template <typename T, int N>
__global__ void __launch_bounds__(kThreads)
    TokenLogprobsKernel(const T* __restrict__ logits, const int64_t* __restrict__ targets, float inverse_temperature,
                        int64_t vocabulary, float* __restrict__ logprobs, float* __restrict__ normalizers,
                        float* __restrict__ entropies) {
  __shared__ Softmax of_warp[kThreads / 32];
  const int64_t row = blockIdx.x;
  const T* z = logits + row * vocabulary;
  Softmax softmax;
  for (int64_t column = threadIdx.x * N; column < vocabulary; column += kThreads * N) {
    const auto lanes = Lanes<T, N>::Load(z + column);
#pragma unroll
    for (int i = 0; i < N; ++i) softmax.Add(lanes.at[i] * inverse_temperature);
  }
  // The lower lane's set first, so that both lanes of a pair compute the same bits.
  for (int offset = 16; offset > 0; offset /= 2) {
    const Softmax other = Shuffled(softmax, offset);
    if ((threadIdx.x & offset) == 0) {
      softmax.Merge(other);
    } else {
      Softmax lower = other;
      lower.Merge(softmax);
      softmax = lower;
    }
  }
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = softmax;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int warp = 1; warp < kThreads / 32; ++warp) softmax.Merge(of_warp[warp]);
  const float log_sum = logf(softmax.sum);
  normalizers[row] = softmax.maximum + log_sum;
  logprobs[row] = ToFloat(z[targets[row]]) * inverse_temperature - softmax.maximum - log_sum;
  if (entropies != nullptr) entropies[row] = log_sum - softmax.weighted / softmax.sum;
}

template <typename T, int N>
__global__ void __launch_bounds__(kThreads)
    TokenLogprobsBackwardKernel(T* __restrict__ logits, const int64_t* __restrict__ targets,
                                const float* __restrict__ normalizers, const float* __restrict__ d_logprobs,
                                float inverse_temperature, unsigned rows, int64_t vocabulary) {
  const unsigned blocks_a_row = gridDim.x / rows;
  const int64_t row = blockIdx.x / blocks_a_row;
  const int64_t column = (static_cast<int64_t>(blockIdx.x % blocks_a_row) * kThreads + threadIdx.x) * N;
  if (column >= vocabulary) return;
  T* z = logits + row * vocabulary + column;
  const float normalizer = normalizers[row];
  const float d = d_logprobs[row] * inverse_temperature;
  const int64_t target = targets[row] - column;
  auto lanes = Lanes<T, N>::Load(z);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const float p = __expf(lanes.at[i] * inverse_temperature - normalizer);
    lanes.at[i] = d * ((target == i ? 1.0f : 0.0f) - p);
  }
  lanes.Store(z);
}

void TokenLogprobs(Element type, const void* logits, const int64_t* targets, float temperature, int64_t rows,
                   int64_t vocabulary, float* logprobs, float* normalizers, float* entropies, GpuStream stream) {
  ForLanes(type, IsWide(type, logits, vocabulary), [&]<typename T, int N>() {
    TokenLogprobsKernel<T, N><<<Blocks(rows, 1), kThreads, 0, StreamOf(stream)>>>(
        static_cast<const T*>(logits), targets, 1.0f / temperature, vocabulary, logprobs, normalizers, entropies);
  });
}

void TokenLogprobsBackward(Element type, void* logits, const int64_t* targets, const float* normalizers,
                           const float* d_logprobs, float temperature, int64_t rows, int64_t vocabulary,
                           GpuStream stream) {
  ForLanes(type, IsWide(type, logits, vocabulary), [&]<typename T, int N>() {
    // All blocks on x: the grid's other sizes end at 65,535.
    const unsigned grid = Blocks(rows * Blocks(vocabulary, int64_t{kThreads} * N), 1);
    TokenLogprobsBackwardKernel<T, N>
        <<<grid, kThreads, 0, StreamOf(stream)>>>(static_cast<T*>(logits), targets, normalizers, d_logprobs,
                                                  1.0f / temperature, static_cast<unsigned>(rows), vocabulary);
  });
}

}  // namespace

void SetTokenLogprobs(GpuKernels& table) {
  KGRPO_SET_KERNEL(table, token_logprobs, TokenLogprobs);
  KGRPO_SET_KERNEL(table, token_logprobs_backward, TokenLogprobsBackward);
}

}  // namespace kgrpo::policy
