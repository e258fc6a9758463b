// Pairs of kernels: one that orders its accesses, and one that leaves that out in one place. All take (x, y, n); "launch:"
// gives blocks and threads, "// expect: race" marks a line that a race must name, one of the two. order_test.cc judges
// each as often as it takes to decide (RacingReads).

#include <mma.h>

__device__ unsigned AddressOf(const void* shared) { return static_cast<unsigned>(__cvta_generic_to_shared(shared)); }
__device__ float Load(const float* shared) {
  float v;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(AddressOf(shared)) : "memory");
  return v;
}

// ---- more readers than two ----

// launch: 1 128
extern "C" __global__ void ReadersAllWaitedFor(const float* x, float* y, int n) {
  __shared__ float s;
  const int w = threadIdx.x / 32;
  if (threadIdx.x == 0) s = x[0];
  __syncthreads();
  if (w < 3) y[threadIdx.x] = s;
  asm volatile("bar.sync 1, 128;" ::: "memory");
  if (threadIdx.x == 96) s = x[1];
  __syncthreads();
  if (w == 3) y[threadIdx.x] = s;
}
// launch: 1 128
extern "C" __global__ void ReaderInTheMiddle(const float* x, float* y, int n) {
  __shared__ float s;
  const int w = threadIdx.x / 32;
  if (threadIdx.x == 0) s = x[0];
  __syncthreads();
  if (w < 3) y[threadIdx.x] = s;  // expect: race
  if (w != 1) asm volatile("bar.sync 1, 96;" ::: "memory");
  if (threadIdx.x == 96) s = x[1];
  __syncthreads();
  if (w == 3) y[threadIdx.x] = s;
}
// launch: 1 1024
extern "C" __global__ void ReaderAmongThirtyOne(const float* x, float* y, int n) {
  __shared__ float s;
  const int w = threadIdx.x / 32;
  if (threadIdx.x == 0) s = x[0];
  __syncthreads();
  const float mine = w < 31 ? s : 0;  // expect: race
  if (w != 17) asm volatile("bar.sync 1, 992;" ::: "memory");
  if (threadIdx.x == 992) s = x[1];
  __syncthreads();
  y[threadIdx.x] = mine + s;
}
__device__ float word;
__device__ int done[4];
__device__ void Finish(int b) {
  __threadfence();
  atomicExch(&done[b], 1);
}
__device__ void WaitFor(int b) {
  while (atomicAdd(&done[b], 0) == 0) {
  }
  __threadfence();
}
// launch: 4 32
extern "C" __global__ void BlocksAllWaitedFor(const float* x, float* y, int n) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x < 3) {
    y[blockIdx.x] = word;
    Finish(blockIdx.x);
  } else {
    for (int b = 0; b < 3; ++b) WaitFor(b);
    word = x[0];
    y[3] = 0;
  }
}
// launch: 4 32
extern "C" __global__ void BlockInTheMiddle(const float* x, float* y, int n) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x < 3) {
    y[blockIdx.x] = word;  // expect: race
    if (blockIdx.x != 1) Finish(blockIdx.x);
  } else {
    for (int b = 0; b < 3; b += 2) WaitFor(b);
    word = x[0];
    y[3] = 0;
  }
}

// ---- lanes of a warp ----

// launch: 1 32
extern "C" __global__ void NeighbourThenOwnSynchronised(const float* x, float* y, int n) {
  __shared__ float s[32];
  const int t = threadIdx.x;
  s[t] = x[t];
  __syncwarp();
  const float other = Load(&s[t ^ 1]), own = Load(&s[t]);
  __syncwarp();
  s[t] = own + other;
  y[t] = s[t];
}
// launch: 1 32
extern "C" __global__ void NeighbourThenOwn(const float* x, float* y, int n) {
  __shared__ float s[32];
  const int t = threadIdx.x;
  s[t] = x[t];
  __syncwarp();
  const float other = Load(&s[t ^ 1]), own = Load(&s[t]);
  s[t] = own + other;  // expect: race
  y[t] = s[t];
}
// launch: 1 32
extern "C" __global__ void AllReadLastWritesSynchronised(const float* x, float* y, int n) {
  __shared__ float s;
  if (threadIdx.x == 0) s = x[0];
  __syncwarp();
  const float all = s;
  __syncwarp();
  if (threadIdx.x == 31) s = all + 1;
  y[threadIdx.x] = all;
}
// launch: 1 32
extern "C" __global__ void AllReadLastWrites(const float* x, float* y, int n) {
  __shared__ float s;
  if (threadIdx.x == 0) s = x[0];
  __syncwarp();
  const float all = s;
  if (threadIdx.x == 31) s = all + 1;  // expect: race
  y[threadIdx.x] = all;
}
// launch: 1 32
extern "C" __global__ void HalvesSynchroniseTogether(const float* x, float* y, int n) {
  __shared__ float s[32];
  const int t = threadIdx.x;
  s[t] = x[t];
  __syncwarp(t < 16 ? 0xffffu : 0xffff0000u);
  const float near = s[t ^ 8];
  __syncwarp();
  y[t] = near + s[t ^ 16];
}
// launch: 1 32
extern "C" __global__ void HalvesSynchroniseApart(const float* x, float* y, int n) {
  __shared__ float s[32];
  const int t = threadIdx.x;
  s[t] = x[t];
  __syncwarp(t < 16 ? 0xffffu : 0xffff0000u);
  y[t] = s[t ^ 16];  // expect: race
}

// ---- flags within a block ----

// launch: 1 64
extern "C" __global__ void VolatileFlagBetweenFences(const float* x, float* y, int n) {
  __shared__ float s[32];
  __shared__ volatile int ready;
  const int t = threadIdx.x;
  if (t == 0) ready = 0;
  __syncthreads();
  if (t < 32) {
    s[t] = x[t];
    __syncwarp();
    __threadfence_block();
    if (t == 0) ready = 1;
  } else {
    while (ready == 0) {
    }
    __threadfence_block();
    y[t] = s[63 - t];
  }
}
// launch: 1 64
extern "C" __global__ void VolatileFlagWithoutFence(const float* x, float* y, int n) {
  __shared__ float s[32];
  __shared__ volatile int ready;
  const int t = threadIdx.x;
  if (t == 0) ready = 0;
  __syncthreads();
  if (t < 32) {
    s[t] = x[t];
    __syncwarp();
    if (t == 0) ready = 1;
  } else {
    while (ready == 0) {
    }
    __threadfence_block();
    y[t] = s[63 - t];  // expect: race
  }
}
// launch: 1 64
extern "C" __global__ void FenceBeforeTheStores(const float* x, float* y, int n) {
  __shared__ float s[32];
  __shared__ volatile int ready;
  const int t = threadIdx.x;
  if (t == 0) ready = 0;
  __syncthreads();
  if (t < 32) {
    __threadfence_block();
    s[t] = x[t];
    __syncwarp();
    if (t == 0) ready = 1;
  } else {
    while (ready == 0) {
    }
    __threadfence_block();
    y[t] = s[63 - t];  // expect: race
  }
}
// A counter of warps that are done, and reset without any atomic by the warp that has seen it.
// launch: 1 128
extern "C" __global__ void AtomicCounterOfWarps(const float* x, float* y, int n) {
  __shared__ float s[96];
  __shared__ int count;
  const int t = threadIdx.x;
  if (t == 0) count = 0;
  __syncthreads();
  if (t < 96) {
    s[t] = x[t];
    __syncwarp();
    __threadfence_block();
    if (t % 32 == 0) atomicAdd(&count, 1);
  } else {
    if (t == 96) {
      while (atomicAdd(&count, 0) < 3) {
      }
      __threadfence_block();
    }
    __syncwarp();
    y[t] = s[127 - t] + s[159 - t];
    if (t == 96) count = 0;
  }
}
// launch: 1 128
extern "C" __global__ void AtomicCounterOfTooFewWarps(const float* x, float* y, int n) {
  __shared__ float s[96];
  __shared__ int count;
  const int t = threadIdx.x;
  if (t == 0) count = 0;
  __syncthreads();
  if (t < 96) {
    s[t] = x[t];
    __syncwarp();
    __threadfence_block();
    if (t < 64 && t % 32 == 0) atomicAdd(&count, 1);
  } else {
    if (t == 96) {
      while (atomicAdd(&count, 0) < 2) {
      }
      __threadfence_block();
    }
    __syncwarp();
    y[t] = s[127 - t] + s[191 - t];  // expect: race
  }
}
__device__ volatile int handed;
// launch: 1 64
extern "C" __global__ void FlagInGlobalMemory(const float* x, float* y, int n) {
  __shared__ float s[32];
  const int t = threadIdx.x;
  if (t < 32) {
    s[t] = x[t];
    __syncwarp();
    __threadfence_block();
    if (t == 0) handed = 1;
  } else {
    while (handed == 0) {
    }
    __threadfence_block();
    y[t] = s[63 - t];
  }
}
// A fence of the block does not order for another block.
// launch: 2 32
extern "C" __global__ void FlagOfTheBlockForAnother(const float* x, float* y, int n) {
  if (blockIdx.x == 0) {
    y[threadIdx.x] = x[threadIdx.x];
    __syncwarp();
    __threadfence_block();
    if (threadIdx.x == 0) handed = 1;
  } else {
    while (handed == 0) {
    }
    __threadfence();
    y[32 + threadIdx.x] = y[threadIdx.x];  // expect: race
  }
}
// What a warp acquired from another block, it hands on.
// launch: 2 64
extern "C" __global__ void HandedOnWithinTheBlock(const float* x, float* y, int n) {
  __shared__ volatile int ready;
  const int t = threadIdx.x;
  if (blockIdx.x == 0) {
    if (t < 32) y[t] = x[t];
    __syncthreads();
    if (t == 0) Finish(0);
    return;
  }
  if (t == 0) ready = 0;
  __syncthreads();
  if (t == 0) {
    WaitFor(0);
    __threadfence_block();
    ready = 1;
  } else if (t >= 32) {
    while (ready == 0) {
    }
    __threadfence_block();
    y[t] = y[t - 32];
  }
}

// ---- turns: a load that has seen an atomic comes after it ----

__device__ int turn;
__device__ int Acquire(int* p) {
  int v;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
// launch: 4 32
extern "C" __global__ void TurnResetPlainly(const float* x, float* y, int n) {
  if (threadIdx.x == 0) {
    while (Acquire(&turn) != blockIdx.x) {
    }
  }
  __syncthreads();
  y[threadIdx.x] = (blockIdx.x == 0 ? 0 : y[threadIdx.x]) + x[blockIdx.x * 32 + threadIdx.x];
  __syncthreads();
  if (threadIdx.x != 0) return;
  if (blockIdx.x + 1 == gridDim.x) {
    turn = 0;
  } else {
    __threadfence();
    atomicAdd(&turn, 1);
  }
}
// launch: 4 32
extern "C" __global__ void TurnResetBeforeItsTurn(const float* x, float* y, int n) {
  if (blockIdx.x + 1 == gridDim.x) {
    if (threadIdx.x == 0) turn = 0;  // expect: race
    return;
  }
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(&turn, 1);
    y[blockIdx.x] = 0;
  }
}

// ---- atomics and volatile stores ----

// launch: 4 32
extern "C" __global__ void AtomicsOfTheGrid(const float* x, float* y, int n) { atomicAdd(&y[0], x[threadIdx.x]); }
// launch: 4 32
extern "C" __global__ void AtomicsOfTheBlock(const float* x, float* y, int n) {
  atomicAdd_block(&y[0], x[threadIdx.x]);  // expect: race
}
// launch: 1 64
extern "C" __global__ void AtomicsOfTheBlockWithinIt(const float* x, float* y, int n) {
  atomicAdd_block(&y[0], x[threadIdx.x]);
}
// launch: 1 64
extern "C" __global__ void FlagClearedBeforeABarrier(const float* x, float* y, int n) {
  __shared__ volatile int flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x == 32) flag = 1;
  __syncthreads();
  y[threadIdx.x] = flag;
}
// launch: 1 64
extern "C" __global__ void FlagClearedAnyTime(const float* x, float* y, int n) {
  __shared__ volatile int flag;
  if (threadIdx.x == 0) flag = 0;
  if (threadIdx.x == 32) flag = 1;  // expect: race
  __syncthreads();
  y[threadIdx.x] = flag;
}

// ---- matrices read ahead ----

__device__ void LoadMatrices(const float* shared, unsigned* r) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(AddressOf(shared)));
}
// launch: 1 64
extern "C" __global__ void MatricesReadAheadAndDropped(const float* x, float* y, int n) {
  __shared__ __align__(16) float s[128];
  const int t = threadIdx.x;
  s[t] = x[t];
  s[t + 64] = x[t + 64];
  __syncthreads();
  unsigned r[4];
  LoadMatrices(&s[t % 32 * 4], r);
  s[t] = 2 * x[t];
  __syncthreads();
  y[t] = s[63 - t];
}
// launch: 1 64
extern "C" __global__ void MatricesReadAheadAndUsed(const float* x, float* y, int n) {
  __shared__ __align__(16) float s[128];
  const int t = threadIdx.x;
  s[t] = x[t];
  s[t + 64] = x[t + 64];
  __syncthreads();
  unsigned r[4];
  LoadMatrices(&s[t % 32 * 4], r);
  s[t] = 2 * x[t];  // expect: race
  __syncthreads();
  y[t] = s[63 - t] + __uint_as_float(r[1]);
}
// Only the rows that stay are used: those of the last two matrices.
// launch: 1 64
extern "C" __global__ void MatricesReadAheadUsedWhereTheyStay(const float* x, float* y, int n) {
  __shared__ __align__(16) float s[128];
  const int t = threadIdx.x;
  s[t] = x[t];
  s[t + 64] = x[t + 64];
  __syncthreads();
  unsigned r[4];
  LoadMatrices(&s[t % 32 * 4], r);
  s[t] = 2 * x[t];
  __syncthreads();
  y[t] = s[63 - t] + __uint_as_float(r[2]) + __uint_as_float(r[3]);
}
// launch: 1 64
extern "C" __global__ void FragmentReadAheadAndDropped(const float* x, float* y, int n) {
  __shared__ __align__(32) half s[256];
  const int t = threadIdx.x;
  for (int i = t; i < 256; i += 64) s[i] = __float2half(x[i]);
  __syncthreads();
  nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, half, nvcuda::wmma::row_major> a;
  nvcuda::wmma::load_matrix_sync(a, s, 16);
  for (int i = t; i < 256; i += 64) s[i] = __float2half(2 * x[i]);
  __syncthreads();
  y[t] = __half2float(s[255 - t]);
  if (n < 0) y[t] += __half2float(a.x[0]);
}
// launch: 1 64
extern "C" __global__ void FragmentReadAheadAndUsed(const float* x, float* y, int n) {
  __shared__ __align__(32) half s[256];
  const int t = threadIdx.x;
  for (int i = t; i < 256; i += 64) s[i] = __float2half(x[i]);
  __syncthreads();
  nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, half, nvcuda::wmma::row_major> a;
  nvcuda::wmma::load_matrix_sync(a, s, 16);
#pragma unroll 1
  for (int i = t; i < 256; i += 64) s[i] = __float2half(2 * x[i]);  // expect: race
  __syncthreads();
  y[t] = __half2float(s[255 - t]);
  if (n > 0) y[t] += __half2float(a.x[0]);
}

// ---- values read ahead ----

__device__ float LoadGlobal(const float* p) {
  float v;
  asm volatile("ld.global.f32 %0, [%1];" : "=f"(v) : "l"(p) : "memory");
  return v;
}
// launch: 4 32
extern "C" __global__ void NextBlocksElementDropped(const float* x, float* y, int n) {
  const int i = blockIdx.x * 32 + threadIdx.x;
  const float ahead = LoadGlobal(&y[i + 32]);
  y[i] = x[i] + (n < 0 ? ahead : 0);
}
// launch: 4 32
extern "C" __global__ void NextBlocksElementUsed(const float* x, float* y, int n) {
  const int i = blockIdx.x * 32 + threadIdx.x;
  const float ahead = LoadGlobal(&y[i + 32]);
  y[i] = x[i] + (n > 0 ? ahead : 0);  // expect: race
}
// All lanes load a word; the one that uses it overwrites it.
// launch: 1 32
extern "C" __global__ void UsedByItsWriterAlone(const float* x, float* y, int n) {
  __shared__ float s;
  if (threadIdx.x == 0) s = x[0];
  __syncwarp();
  const float v = Load(&s);
  if (threadIdx.x == 7) s = v + 1;
  __syncwarp();
  y[threadIdx.x] = s;
}
// launch: 1 32
extern "C" __global__ void UsedByAnotherLaneToo(const float* x, float* y, int n) {
  __shared__ float s;
  if (threadIdx.x == 0) s = x[0];
  __syncwarp();
  const float v = Load(&s);
  if (threadIdx.x == 7) s = v + 1;  // expect: race
  __syncwarp();
  y[threadIdx.x] = s + (threadIdx.x == 8 ? v : 0);
}
