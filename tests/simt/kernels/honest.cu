// Correct kernels in styles that a careless checker would accuse. All take (x, y, n) as in buggy.cu.
#include <cooperative_groups.h>

extern "C" __global__ void EarlyReturnBeforeBarrier(const float* x, float* y, int n) {
  __shared__ float s[64];
  const int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= n - 40) return;
  s[threadIdx.x] = x[i];
  __syncthreads();
  y[i] = s[threadIdx.x];
}
extern "C" __global__ void EqualValues(const float* x, float* y, int n) {
  __shared__ int any;
  any = 0;
  __syncthreads();
  if (x[blockIdx.x * 64 + threadIdx.x] < 2) any = 1;
  __syncthreads();
  y[blockIdx.x * 64 + threadIdx.x] = any;
  if (any) y[0] = 1;
}
extern "C" __global__ void WarpSynchronous(const float* x, float* y, int n) {
  __shared__ float s[64];
  const int i = blockIdx.x * 64 + threadIdx.x;
  float v = x[i];
  for (int d = 1; d < 32; d *= 2) {
    s[threadIdx.x] = v;
    __syncwarp();
    v += s[threadIdx.x ^ d];
    __syncwarp();
  }
  y[i] = v;
}
extern "C" __global__ void VolatileTail(const float* x, float* y, int n) {
  __shared__ float s[64];
  const int t = threadIdx.x;
  s[t] = x[blockIdx.x * 64 + t];
  __syncthreads();
  if (t < 32) {
    float v = s[t] + s[t + 32];
    for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
    if (t == 0) y[blockIdx.x] = v;
  }
}
extern "C" __global__ void DoubleBuffer(const float* x, float* y, int n) {
  __shared__ float s[2][64];
  float sum = 0;
  s[0][threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  for (int t = 0; t < 4; ++t) {
    if (t + 1 < 4) s[(t + 1) & 1][threadIdx.x] = x[(t + 1) * 64 + threadIdx.x];
    for (int k = 0; k < 64; ++k) sum += s[t & 1][k];
    __syncthreads();
  }
  y[blockIdx.x * 64 + threadIdx.x] = sum;
}
__device__ unsigned tickets;
extern "C" __global__ void LastBlock(const float* x, float* y, int n) {
  __shared__ float s[64];
  __shared__ bool last;
  s[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
  __syncthreads();
  for (int d = 32; d > 0; d >>= 1) {
    if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    y[blockIdx.x] = s[0];
    __threadfence();
    last = atomicInc(&tickets, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last) {
    if (threadIdx.x == 0) {
      float sum = 0;
      for (int b = 0; b < gridDim.x; ++b) sum += y[b];
      y[100] = sum;
    }
  }
}
__device__ volatile float prefix[64];
__device__ volatile int ready[64];
extern "C" __global__ void LookBack(const float* x, float* y, int n) {
  if (threadIdx.x == 0) {
    // blocks in reverse order, so that each waits for one that starts later
    const int b = gridDim.x - 1 - blockIdx.x;
    float before = 0;
    if (b > 0) {
      while (ready[b - 1] == 0) {
      }
      __threadfence();
      before = prefix[b - 1];
    }
    prefix[b] = before + x[b];
    __threadfence();
    ready[b] = 1;
    y[b] = before + x[b];
  }
}
// A barrier is its number: each half of the block waits at one of its own branch, and they meet.
extern "C" __global__ void WarpsMeetAtDifferentBarriers(const float* x, float* y, int n) {
  __shared__ float s[64];
  const int t = threadIdx.x, i = blockIdx.x * 64 + t;
  if (t < 32) {
    s[t] = x[i];
    __syncthreads();
    y[i] = s[63 - t];
  } else {
    s[t] = 2 * x[i];
    __syncthreads();
    y[i] = s[63 - t];
  }
}
// The second warp has exited: who is left goes on.
extern "C" __global__ void BarrierAfterAnExit(const float* x, float* y, int n) {
  __shared__ float s[64];
  const int t = threadIdx.x, i = blockIdx.x * 64 + t;
  s[t] = x[i];
  __syncthreads();
  if (t >= 32) {
    y[i] = s[t];
    return;
  }
  s[t] += 1;
  __syncthreads();
  y[i] = s[31 - t];
}
__device__ int lock;
__device__ float guarded;
extern "C" __global__ void SpinLock(const float* x, float* y, int n) {
  if (threadIdx.x == 0) {
    while (atomicCAS(&lock, 0, 1) != 0) {
    }
    __threadfence();
    guarded += x[blockIdx.x];
    __threadfence();
    atomicExch(&lock, 0);
  }
}
extern "C" __global__ void GridSync(const float* x, float* y, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = x[i];
  cooperative_groups::this_grid().sync();
  const float v = y[n - 1 - i];
  cooperative_groups::this_grid().sync();
  y[i] = v;
}
__device__ unsigned arrived;
__device__ volatile unsigned generation;
extern "C" __global__ void SoftwareBarrier(const float* x, float* y, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = x[i];
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned now = generation;
    __threadfence();
    if (atomicAdd(&arrived, 1) == gridDim.x - 1) {
      arrived = 0;
      __threadfence();
      generation = now + 1;
    } else {
      while (generation == now) {
      }
    }
    __threadfence();
  }
  __syncthreads();
  if (y[n - 1 - i] != x[n - 1 - i]) __trap();
}
extern "C" __global__ void Tiles(const float* x, float* y, int n) {
  const auto tile = cooperative_groups::tiled_partition<8>(cooperative_groups::this_thread_block());
  const int i = blockIdx.x * 64 + threadIdx.x;
  float v = x[i];
  if (threadIdx.x / 8 % 2 == 0) {
    for (int d = 4; d > 0; d /= 2) v += tile.shfl_xor(v, d);
  }
  y[i] = v;
}
// A fence of one warp, behind an mbarrier at which the warp that counts its block waits.
__device__ unsigned counted;
extern "C" __global__ void FencedBehindAnMbarrier(const float* x, float* y, int n) {
  __shared__ unsigned long long barrier;
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 32;" ::"r"(at) : "memory");
  __syncthreads();
  if (threadIdx.x >= 32) {
    [[maybe_unused]] unsigned long long token;
    y[blockIdx.x * 64 + threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
    __threadfence();
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(token) : "r"(at) : "memory");
    return;
  }
  for (int done = 0; done == 0;) {
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0; selp.s32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(at)
                 : "memory");
  }
  if (threadIdx.x != 0) return;
  if (atomicInc(&counted, gridDim.x - 1) == gridDim.x - 1) {
    float sum = 0;
    for (int b = 0; b < gridDim.x; ++b) sum += y[b * 64 + 32] + y[b * 64 + 63];
    y[0] = sum;
  }
}
extern "C" __global__ void PartialWarpShuffle(const float* x, float* y, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  float v = x[i];
  if (threadIdx.x < 8) {
    for (int d = 4; d > 0; d /= 2) v += __shfl_down_sync(0xffu, v, d);
    if (threadIdx.x != 0) v = x[i];  // what lanes 4 to 7 read is undefined
  }
  y[i] = v;
}
extern "C" __global__ void DivergentLoopThenShuffle(const float* x, float* y, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  float v = 0;
  for (int k = 0; k <= threadIdx.x % 7; ++k) v += x[(i + k) % n];
  v = __shfl_xor_sync(0xffffffffu, v, 1);
  y[i] = v;
}
extern "C" __global__ void AsyncCopy(const float* x, float* y, int n) {
  __shared__ float s[2][64];
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(&s[0][threadIdx.x]));
  for (int t = 0; t < 2; ++t) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to + t * 256), "l"(x + t * 64 + threadIdx.x));
    asm volatile("cp.async.commit_group;");
  }
  float sum = 0;
  asm volatile("cp.async.wait_group 1;");
  __syncthreads();
  sum += s[0][63 - threadIdx.x];
  asm volatile("cp.async.wait_group 0;");
  __syncthreads();
  sum += s[1][63 - threadIdx.x];
  y[blockIdx.x * 64 + threadIdx.x] = sum;
}
extern "C" __global__ void NamedBarriers(const float* x, float* y, int n) {
  __shared__ float s[64];
  const int t = threadIdx.x, i = blockIdx.x * 64 + t;
  s[t] = x[i];
  if (t < 32) {
    asm volatile("bar.sync 1, 32;" ::: "memory");
    y[i] = s[31 - t];
  } else {
    asm volatile("bar.sync 2, 32;" ::: "memory");
    y[i] = s[95 - t];
  }
}
extern "C" __global__ void ProducerAndConsumer(const float* x, float* y, int n) {
  __shared__ float s[32];
  const int t = threadIdx.x % 32;
  for (int i = 0; i < 2; ++i) {
    if (threadIdx.x < 32) {
      if (i > 0) asm volatile("bar.sync 2, 64;" ::: "memory");
      s[t] = x[32 * i + t];
      asm volatile("bar.arrive 1, 64;" ::: "memory");
    } else {
      asm volatile("bar.sync 1, 64;" ::: "memory");
      y[blockIdx.x * 64 + 32 * i + t] = s[31 - t];
      if (i == 0) asm volatile("bar.arrive 2, 64;" ::: "memory");
    }
  }
}
extern "C" __global__ void VoteAndMatch(const float* x, float* y, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  const unsigned positive = __ballot_sync(0xffffffffu, x[i] > 0);
  const unsigned peers = __match_any_sync(0xffffffffu, i % 3);
  y[i] = __popc(positive) + __popc(peers) + __reduce_add_sync(0xffffffffu, i) + (__syncthreads_count(x[i] > 0) > 10) +
         __any_sync(~0u, i == 3);
}
