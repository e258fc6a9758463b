// The kernels of microbenchmarks.cu. The measured operation is alone in a loop; results are stored only if they have
// a value that they never have, so that nothing is optimised away and nothing is written.
#ifndef KGRPO_BENCH_CALIBRATE_MICRO_KERNELS_CUH
#define KGRPO_BENCH_CALIBRATE_MICRO_KERNELS_CUH

#include <cuda_fp16.h>
#include <mma.h>

namespace kgrpo::bench {

constexpr int kRounds = 256, kUnroll = 16, kChains = 4;

__global__ void EmptyKernel() {}

// A permutation of `count` elements, `stride` words apart, as one cycle in steps that no prefetcher follows.
__global__ void LinkKernel(unsigned* next, unsigned count, unsigned stride, unsigned step) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    next[static_cast<size_t>(i) * stride] = static_cast<unsigned>((i + static_cast<unsigned long long>(step)) % count) * stride;
}

// One thread follows the links; cycles a step.
__global__ void ChaseKernel(const unsigned* next, int warm, int steps, float* cycles) {
  unsigned at = 0;
  for (int i = 0; i < warm; ++i) at = next[at];
  const long long start = clock64();
  for (int i = 0; i < steps; ++i) at = next[at];
  const long long end = clock64();
  *cycles = at == 0xffffffffu ? 0.0f : static_cast<float>(end - start) / static_cast<float>(steps);
}

__global__ void ChaseSharedKernel(int steps, float* cycles) {
  __shared__ unsigned next[1024];
  for (unsigned i = threadIdx.x; i < 1024; i += blockDim.x) next[i] = (i + 33) % 1024;
  __syncthreads();
  unsigned at = 0;
  const long long start = clock64();
  for (int i = 0; i < steps; ++i) at = next[at];
  const long long end = clock64();
  if (threadIdx.x == 0) *cycles = at == 0xffffffffu ? 0.0f : static_cast<float>(end - start) / static_cast<float>(steps);
}

enum class Chain { kFma, kInteger, kDouble, kHalf, kSpecial, kShuffle };

template <Chain kind>
__device__ auto Step(auto x) {
  if constexpr (kind == Chain::kFma) return fmaf(x, 0.999f, 0.5f);
  if constexpr (kind == Chain::kInteger) return (x ^ 0x5a5a5a5) + (x >> 1);
  if constexpr (kind == Chain::kDouble) return fma(x, 0.999, 0.5);
  if constexpr (kind == Chain::kHalf) return __hfma2(x, x, x);
  if constexpr (kind == Chain::kSpecial) {
    float result;
    asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
  }
  if constexpr (kind == Chain::kShuffle) return __shfl_xor_sync(0xffffffffu, x, 1);
}

template <Chain kind>
__device__ auto Start(unsigned seed) {
  if constexpr (kind == Chain::kInteger) return seed;
  else if constexpr (kind == Chain::kDouble) return static_cast<double>(seed);
  else if constexpr (kind == Chain::kHalf) return __float2half2_rn(static_cast<float>(seed) * 1e-4f);
  else return static_cast<float>(seed) * 1e-3f;
}

template <Chain kind>
__device__ bool Never(auto x) {
  if constexpr (kind == Chain::kHalf) return __low2float(x) == -12345.0f;
  else return x == static_cast<decltype(x)>(123456789);
}

// `kChains` independent chains of one operation in each thread.
template <Chain kind, int chains>
__global__ void ChainKernel(int rounds, float* sink) {
  decltype(Start<kind>(0)) x[chains];
  for (int c = 0; c < chains; ++c) x[c] = Start<kind>(threadIdx.x + static_cast<unsigned>(c));
  const long long start = clock64();
  for (int r = 0; r < rounds; ++r) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
#pragma unroll
      for (int c = 0; c < chains; ++c) x[c] = Step<kind>(x[c]);
    }
  }
  const long long end = clock64();
  bool never = false;
  for (int c = 0; c < chains; ++c) never |= Never<kind>(x[c]);
  if (never) sink[1] = 1;
  if (blockIdx.x == 0 && threadIdx.x == 0) sink[0] = static_cast<float>(end - start) / static_cast<float>(rounds * kUnroll);
}

__global__ void BarrierKernel(int rounds, float* cycles) {
  const long long start = clock64();
  for (int r = 0; r < rounds; ++r) __syncthreads();
  const long long end = clock64();
  if (threadIdx.x == 0) *cycles = static_cast<float>(end - start) / static_cast<float>(rounds);
}

__global__ void ReadKernel(const float4* x, size_t count, int times, float* sink) {
  float total = 0;
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (int t = 0; t < times; ++t) {
#pragma unroll 4
    for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < count; i += stride) {
      const float4 v = __ldcg(&x[i]);
      total += v.x + v.y + v.z + v.w;
    }
  }
  if (total == -12345.0f) *sink = total;
}
__global__ void WriteKernel(float4* x, size_t count) {
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < count; i += stride)
    x[i] = make_float4(1, 2, 3, 4);
}
__global__ void CopyKernel(const float4* x, float4* y, size_t count) {
  const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  if (i < count) y[i] = x[i];
}
// Each thread writes 4 bytes, `stride` words apart: a sector filled only in part for stride >= 8.
__global__ void StrideWriteKernel(float* x, int stride, int rounds, size_t words) {
  const size_t thread = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  for (int r = 0; r < rounds; ++r) x[(thread * static_cast<size_t>(stride) + static_cast<size_t>(r) * 8 * 1021) % words] = 1.0f;
}
// Loads that hit the L1, each warp touching `lines` lines of 128 bytes.
__global__ void LinesKernel(const float* x, int lines, int rounds, float* sink) {
  const unsigned lane = threadIdx.x % 32;
  unsigned at = (lane % static_cast<unsigned>(lines)) * 32 + lane / static_cast<unsigned>(lines);
  float total = 0;
  for (int r = 0; r < rounds; ++r) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      total += __ldca(&x[at]);
      at = (at + 32) % 1024;
    }
  }
  if (total == -12345.0f) *sink = total;
}
// Shared loads with `ways` lanes in one bank.
__global__ void ConflictKernel(int ways, int rounds, float* sink) {
  __shared__ float tile[32 * 33];
  for (unsigned i = threadIdx.x; i < 32 * 33; i += blockDim.x) tile[i] = 1.0f;
  __syncthreads();
  const unsigned lane = threadIdx.x % 32;
  const unsigned w = static_cast<unsigned>(ways);
  const volatile float* at = &tile[(lane % w) * 32 + lane / w];
  float total = 0;
  for (int r = 0; r < rounds; ++r) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) total += *at;
  }
  if (total == -12345.0f) *sink = total;
}
// Lane l of each warp adds at (l % different) * apart words; warps of all blocks meet there, or each block has its own.
__global__ void GlobalAtomicKernel(int* x, int different, int apart, int block_words, int rounds) {
  const unsigned lane = threadIdx.x % 32;
  int* at = x + static_cast<size_t>(blockIdx.x) * static_cast<size_t>(block_words) +
            (lane % static_cast<unsigned>(different)) * static_cast<unsigned>(apart);
  for (int r = 0; r < rounds; ++r) atomicAdd(at, static_cast<int>(lane) | 1);
}
__global__ void SharedAtomicKernel(int different, int rounds, float* sink) {
  __shared__ int counts[1024];
  for (unsigned i = threadIdx.x; i < 1024; i += blockDim.x) counts[i] = 0;
  __syncthreads();
  const unsigned lane = threadIdx.x % 32;
  for (int r = 0; r < rounds; ++r)
    atomicAdd(&counts[(lane % static_cast<unsigned>(different) + threadIdx.x / 32 * 32) % 1024], static_cast<int>(lane) | 1);
  __syncthreads();
  if (counts[0] == -12345) *sink = 1;
}

__global__ void TensorKernel(int rounds, float* sink) {
  namespace wmma = nvcuda::wmma;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[kChains];
  // All differ, or the compiler multiplies equal halves of the operands once.
  for (int i = 0; i < a.num_elements; ++i) a.x[i] = __float2half(0.01f * static_cast<float>((threadIdx.x + 3 * i) % 7));
  for (int i = 0; i < b.num_elements; ++i) b.x[i] = __float2half(0.02f * static_cast<float>((threadIdx.x + 5 * i) % 11));
  for (int c = 0; c < kChains; ++c) wmma::fill_fragment(sums[c], static_cast<float>(c));
  for (int r = 0; r < rounds; ++r) {
#pragma unroll
    for (auto& sum : sums) wmma::mma_sync(sum, a, b, sum);
  }
  float total = 0;
  for (auto& sum : sums) {
    for (int i = 0; i < sum.num_elements; ++i) total += sum.x[i];
  }
  if (total == -1.0f) *sink = total;
}

}  // namespace kgrpo::bench

#endif
