// Kernels that fetch tiles into shared memory one by one or ahead, and products on tensor cores. The times of the Tiles
// kernels were measured on an H100: see time_model_test.cc.
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

constexpr int kTile = 4096, kThreads = 256;

__device__ unsigned At(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

__device__ float Use(const float* tile) {
  float sum = 0;
  for (int i = threadIdx.x; i < kTile; i += kThreads) {
    const float v = tile[i];
    float p = v;
    for (int k = 0; k < 4; ++k) p = p * v + 0.5f;
    sum += p;
  }
  return sum;
}

__device__ void Fetch(float* tile, const float* x) {
  for (int i = threadIdx.x; i < kTile / 4; i += kThreads) __pipeline_memcpy_async(tile + 4 * i, x + 4 * i, 16);
}

__device__ void Finish(float sum, float* y) {
  __shared__ float part[kThreads];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int k = kThreads / 2; k > 0; k /= 2) {
    if (threadIdx.x < k) part[threadIdx.x] += part[threadIdx.x + k];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}

// Every block reads all tiles. `stages` tiles of shared memory, so that stages - 1 are fetched ahead.
template <int stages>
__device__ void Tiles(const float* x, float* y, int tiles) {
  extern __shared__ __align__(16) float memory[];
  float sum = 0;
  for (int t = 0; t < stages - 1; ++t) {
    if (t < tiles) Fetch(memory + t * kTile, x + t * kTile);
    __pipeline_commit();
  }
  for (int t = 0; t < tiles; ++t) {
    if (stages == 1) {
      __syncthreads();
      Fetch(memory, x + t * kTile);
      __pipeline_commit();
    }
    __pipeline_wait_prior(stages == 1 ? 0 : stages - 2);
    __syncthreads();
    if (stages > 1) {
      const int next = t + stages - 1;
      if (next < tiles) Fetch(memory + next % stages * kTile, x + next * kTile);
      __pipeline_commit();
    }
    sum += Use(memory + t % stages * kTile);
  }
  Finish(sum, y);
}
extern "C" __global__ void TilesOneStage(const float* x, float* y, int tiles) { Tiles<1>(x, y, tiles); }
extern "C" __global__ void TilesTwoStages(const float* x, float* y, int tiles) { Tiles<2>(x, y, tiles); }
extern "C" __global__ void TilesThreeStages(const float* x, float* y, int tiles) { Tiles<3>(x, y, tiles); }

extern "C" __global__ void TilesByRegisters(const float* __restrict__ x, float* __restrict__ y, int tiles) {
  extern __shared__ __align__(16) float memory[];
  float sum = 0;
  float4 ahead[4];
  for (int i = 0; i < 4; ++i) ahead[i] = *reinterpret_cast<const float4*>(x + 4 * (threadIdx.x + kThreads * i));
  for (int t = 0; t < tiles; ++t) {
    for (int i = 0; i < 4; ++i) *reinterpret_cast<float4*>(memory + 4 * (threadIdx.x + kThreads * i)) = ahead[i];
    __syncthreads();
    if (t + 1 < tiles) {
      for (int i = 0; i < 4; ++i)
        ahead[i] = *reinterpret_cast<const float4*>(x + (t + 1) * kTile + 4 * (threadIdx.x + kThreads * i));
    }
    sum += Use(memory);
    __syncthreads();
  }
  Finish(sum, y);
}

__device__ void Wait(const unsigned long long* barrier, unsigned parity) {
  unsigned done = 0;
  while (done == 0)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(At(barrier)), "r"(parity)
                 : "memory");
}

// Two stages whose copies arrive at mbarriers, as those of cuda::barrier do.
extern "C" __global__ void TilesByMbarriers(const float* x, float* y, int tiles) {
  extern __shared__ __align__(16) float memory[];
  __shared__ unsigned long long full[2], empty[2];
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) {
      asm volatile("mbarrier.init.shared.b64 [%0], 256;" ::"r"(At(&full[i])) : "memory");
      asm volatile("mbarrier.init.shared.b64 [%0], 256;" ::"r"(At(&empty[i])) : "memory");
    }
  }
  __syncthreads();
  auto fill = [&](int t) {
    if (t >= 2) Wait(&empty[t & 1], (t / 2 - 1) & 1);
    Fetch(memory + (t & 1) * kTile, x + t * kTile);
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(At(&full[t & 1])) : "memory");
  };
  float sum = 0;
  fill(0);
  for (int t = 0; t < tiles; ++t) {
    if (t + 1 < tiles) fill(t + 1);
    Wait(&full[t & 1], t / 2 & 1);
    sum += Use(memory + (t & 1) * kTile);
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(At(&empty[t & 1])) : "memory");
  }
  Finish(sum, y);
}

// One product of fragments from global memory, whose rows are a line apart.
extern "C" __global__ void FragmentsFromGlobal(const half* a, const half* b, float* c) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.0f);
  wmma::load_matrix_sync(fa, a, 64);
  wmma::load_matrix_sync(fb, b, 64);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(c, fc, 32, wmma::mem_row_major);
}
