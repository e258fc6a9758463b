// Kernels with one mistake each. The line that a check must name (of a race, one of the two) carries "// expect: CODE".
// All take (x, y, n): two arrays of n floats, x initialised, y not, and are launched with 4 blocks of 64 threads, n =
// 256, unless the test says otherwise.

extern "C" __global__ void RaceNoBarrier(const float* x, float* y, int n) {
  __shared__ float s[64];
  const int i = blockIdx.x * 64 + threadIdx.x;
  s[threadIdx.x] = x[i];
  y[i] = s[63 - threadIdx.x];  // expect: uninitialised race
}
extern "C" __global__ void RaceMissingSecondBarrier(const float* x, float* y, int n) {
  __shared__ float s[64];
  float sum = 0;
  for (int t = 0; t < 4; ++t) {
    s[threadIdx.x] = x[t * 64 + threadIdx.x] + t;  // expect: race
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < 64; ++k) sum += s[k];
  }
  y[blockIdx.x * 64 + threadIdx.x] = sum;
}
extern "C" __global__ void RaceReductionWithoutBarrier(const float* x, float* y, int n) {
  __shared__ float s[64];
  s[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
  __syncthreads();
#pragma unroll 1
  for (int d = 32; d > 0; d >>= 1) {
    if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];  // expect: race
  }
  if (threadIdx.x == 0) y[blockIdx.x] = s[0];
}
extern "C" __global__ void RaceWarpWithoutSync(const float* x, float* y, int n) {
  __shared__ float s[64];
  s[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
  __syncthreads();
  float v = s[threadIdx.x ^ 1];
  s[threadIdx.x] = v + 1;  // expect: race
  __syncthreads();
  y[blockIdx.x * 64 + threadIdx.x] = s[threadIdx.x];
}
extern "C" __global__ void RaceScatter(const float* x, float* y, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  y[blockIdx.x * 64 + threadIdx.x % 32] = x[i];  // expect: race
}
extern "C" __global__ void RaceBetweenBlocks(const float* x, float* y, int n) {
  y[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];  // expect: race
}
extern "C" __global__ void RaceCounter(const float* x, float* y, int n) {
  y[0] = 0;
  __syncthreads();
  if (x[blockIdx.x * 64 + threadIdx.x] > -2) y[0] += 1;  // expect: race
}
extern "C" __global__ void RaceInPlaceStencil(float* x, float* y, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  if (i + 1 < n) x[i] = x[i] + x[i + 1];  // expect: race
}
extern "C" __global__ void RaceBytes(const float* x, float* y, int n) {
  __shared__ unsigned char s[64];
  s[threadIdx.x] = static_cast<unsigned char>(threadIdx.x);
  __syncthreads();
  const unsigned char v = s[(threadIdx.x + 33) % 64];
  s[threadIdx.x] = v + 1;  // expect: race
  __syncthreads();
  y[blockIdx.x * 64 + threadIdx.x] = s[threadIdx.x];
}
__device__ unsigned ticket;
extern "C" __global__ void RaceFenceBeforeTheStore(const float* x, float* y, int n) {
  if (threadIdx.x != 0) return;
  __threadfence();
  y[blockIdx.x] = x[blockIdx.x];
  if (atomicAdd(&ticket, 1) % gridDim.x == gridDim.x - 1) {
    float sum = 0;
    for (int b = 0; b < gridDim.x; ++b) sum += y[b];  // expect: race
    y[100] = sum;
  }
}
extern "C" __global__ void RaceFenceOfTheBlock(const float* x, float* y, int n) {
  if (threadIdx.x != 0) return;
  y[blockIdx.x] = x[blockIdx.x];
  __threadfence_block();
  if (atomicAdd(&ticket, 1) % gridDim.x == gridDim.x - 1) {
    float sum = 0;
    for (int b = 0; b < gridDim.x; ++b) sum += y[b];  // expect: race
    y[100] = sum;
  }
}
__device__ unsigned another;
extern "C" __global__ void RaceReleasedElsewhere(const float* x, float* y, int n) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    y[0] = x[0];
    __threadfence();
    atomicAdd(&ticket, gridDim.x);
  } else if (atomicAdd(&another, 1) < 1000) {
    y[100 + blockIdx.x] = y[0];  // expect: race
  }
}
extern "C" __global__ void RaceClearedTooLate(const float* x, float* y, int n) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  atomicAdd(&sum, static_cast<int>(x[threadIdx.x] * 100));  // expect: race
  __syncthreads();
  y[blockIdx.x * 64 + threadIdx.x] = sum;
}
extern "C" __global__ void RaceLastBlockWithoutFence(const float* x, float* y, int n) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    y[blockIdx.x] = x[blockIdx.x];
    last = atomicAdd(&ticket, 1) % gridDim.x == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float sum = 0;
    for (int b = 0; b < gridDim.x; ++b) sum += y[b];  // expect: race
    y[100] = sum;
  }
}
extern "C" __global__ void RaceAsyncCopyWithoutBarrier(const float* x, float* y, int n) {
  __shared__ float s[64];
  s[threadIdx.x] = -1;
  __syncthreads();
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(&s[threadIdx.x]));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(x + blockIdx.x * 64 + threadIdx.x));
  asm volatile("cp.async.commit_group;");
  asm volatile("cp.async.wait_group 0;");
  y[blockIdx.x * 64 + threadIdx.x] = s[(threadIdx.x + 40) % 64];  // expect: race
}
extern "C" __global__ void AsyncCopyWithoutWait(const float* x, float* y, int n) {
  __shared__ float s[64];
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(&s[threadIdx.x]));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(x + blockIdx.x * 64 + threadIdx.x));
  asm volatile("cp.async.commit_group;");
  __syncthreads();
  y[blockIdx.x * 64 + threadIdx.x] = s[threadIdx.x];  // expect: race
}

extern "C" __global__ void OutOfBoundsTail(const float* x, float* y, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = x[i + 1];  // expect: out_of_bounds
}
extern "C" __global__ void OutOfBoundsNegative(const float* x, float* y, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = x[i - 1];  // expect: out_of_bounds
}
extern "C" __global__ void OutOfBoundsWrite(const float* x, float* y, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  y[i * 2] = x[i];  // expect: out_of_bounds
}
extern "C" __global__ void OutOfBoundsShared(const float* x, float* y, int n) {
  __shared__ float s[64], t[64];
  t[threadIdx.x] = 0;
  s[threadIdx.x + 1] = x[blockIdx.x * 64 + threadIdx.x];  // expect: out_of_bounds
  __syncthreads();
  y[blockIdx.x * 64 + threadIdx.x] = s[threadIdx.x] + t[threadIdx.x];
}
extern "C" __global__ void OutOfBoundsBeforeShared(const float* x, float* y, int n) {
  __shared__ float s[64];
  s[threadIdx.x] = 1;
  __syncthreads();
  y[blockIdx.x * 64 + threadIdx.x] = s[static_cast<long long>(threadIdx.x) - 1];  // expect: out_of_bounds
}
extern "C" __global__ void OutOfBoundsNull(const float* x, float* y, int n) {
  float* nothing = reinterpret_cast<float*>(static_cast<size_t>(n - 256));
  nothing[threadIdx.x] = x[threadIdx.x];  // expect: out_of_bounds
}
extern "C" __global__ void MisalignedVector(const float* x, float* y, int n) {
  const float4 v = *reinterpret_cast<const float4*>(x + 1 + threadIdx.x);  // expect: misaligned
  y[blockIdx.x * 64 + threadIdx.x] = v.x + v.w;
}

extern "C" __global__ void UninitialisedShared(const float* x, float* y, int n) {
  __shared__ float s[128];
  s[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
  __syncthreads();
  y[blockIdx.x * 64 + threadIdx.x] = s[threadIdx.x + 64];  // expect: uninitialised
}
extern "C" __global__ void UninitialisedLocal(const float* x, float* y, int n) {
  float values[4];
  const int i = blockIdx.x * 64 + threadIdx.x;
  values[i & 3] = x[i];
  y[i] = values[(i + 1) & 3];  // expect: uninitialised
}
extern "C" __global__ void UninitialisedGlobal(const float* x, float* y, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  y[i] += x[i];  // expect: uninitialised
}

extern "C" __global__ void DivergentBarrierInBranch(const float* x, float* y, int n) {
  __shared__ float s[64];
  const int i = blockIdx.x * 64 + threadIdx.x;
  if (threadIdx.x % 2 == 0) {
    s[threadIdx.x] = x[i];
    __syncthreads();  // expect: divergent_barrier
    y[i] = s[threadIdx.x];
  } else {
    s[threadIdx.x] = -x[i];
    __syncthreads();
    y[i] = s[threadIdx.x] * 2;
  }
}
extern "C" __global__ void DivergentBarrierOfHalfAWarp(const float* x, float* y, int n) {
  __shared__ float s[64];
  const int i = blockIdx.x * 64 + threadIdx.x;
  s[threadIdx.x] = x[i];
  if (threadIdx.x < 16) {
    y[i] = s[threadIdx.x] + 1;
    __syncthreads();  // expect: divergent_barrier
    y[i] *= 2;
  }
  __syncthreads();
}
extern "C" __global__ void DivergentReductionBesideAWait(const float* x, float* y, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  if (threadIdx.x < 32) {
    y[i] = __syncthreads_count(x[i] > 0);  // expect: divergent_barrier
  } else {
    __syncthreads();
  }
}
extern "C" __global__ void DivergentCounts(const float* x, float* y, int n) {
  if (threadIdx.x < 32) {
    asm volatile("bar.arrive 1, 64;" ::: "memory");
  } else {
    asm volatile("bar.sync 1, 96;" ::: "memory");  // expect: divergent_barrier
  }
  y[blockIdx.x * 64 + threadIdx.x] = 1;
}
extern "C" __global__ void ShuffleNamesAbsentLanes(const float* x, float* y, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  float v = x[i];
  if (threadIdx.x % 32 < 16) v += __shfl_down_sync(0xffffffffu, v, 8);  // expect: invalid_shuffle
  __syncthreads();
  y[i] = v;
}
extern "C" __global__ void ShuffleWithoutItself(const float* x, float* y, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = __shfl_sync(0x0000ffffu, x[i], 0);  // expect: invalid_shuffle
}
extern "C" __global__ void FailedAssertion(const float* x, float* y, int n) {
  if (x[threadIdx.x] < 100) __trap();  // expect: trap
  y[threadIdx.x] = 1;
}
extern "C" __global__ void RaceNamedBarrierOfTooFew(const float* x, float* y, int n) {
  __shared__ float s[64];
  s[threadIdx.x] = 0;
  __syncthreads();
  s[threadIdx.x] = x[threadIdx.x];
  asm volatile("bar.sync 1, 32;" ::: "memory");
  y[blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x];  // expect: race
}
extern "C" __global__ void RaceVolatileInStep(const float* x, float* y, int n) {
  __shared__ volatile float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < 32) s[threadIdx.x] = s[threadIdx.x + 1] + 1;  // expect: race
  __syncthreads();
  y[blockIdx.x * 64 + threadIdx.x] = s[threadIdx.x];
}
extern "C" __global__ void RaceMbarrierWithoutFence(const float* x, float* y, int n) {
  __shared__ unsigned long long barrier;
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 32;" ::"r"(at) : "memory");
  __syncthreads();
  if (threadIdx.x >= 32) {
    [[maybe_unused]] unsigned long long token;
    y[blockIdx.x * 64 + threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
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
  if (atomicAdd(&ticket, 1) % gridDim.x == gridDim.x - 1) {
    float sum = 0;
    for (int b = 0; b < gridDim.x; ++b) sum += y[b * 64 + 32];  // expect: race
    y[0] = sum;
  }
}
extern "C" __global__ void RaceAfterArrival(const float* x, float* y, int n) {
  __shared__ float s[32];
  const int t = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    s[t] = x[t];
    asm volatile("bar.arrive 1, 64;" ::: "memory");
    s[t] = x[t + 32];  // expect: race
  } else {
    asm volatile("bar.sync 1, 64;" ::: "memory");
    y[blockIdx.x * 64 + t] = s[31 - t];
  }
  __syncthreads();
}

// Not found, but seen in what it computes.
extern "C" __global__ void SumOfNothing(const float* x, float* y, int n) {
  float sum;
#pragma unroll 1
  for (int k = 0; k < n / 64; ++k) sum += x[k];
  y[blockIdx.x * 64 + threadIdx.x] = sum;
}
