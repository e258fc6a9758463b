// Kernels whose outcome CUDA leaves open, and kernels at the bounds of what checked launches keep. See order_test.cc.
#include <cstdio>

// Each lane of a pair stores another value to one place: which stays?
extern "C" __global__ void StoresOfAPair(const float* x, float* y, int n) { y[threadIdx.x / 2] = x[threadIdx.x]; }
extern "C" __global__ void StoresOfAWarp(const float* x, float* y, int n) {
  __shared__ float s;
  s = x[threadIdx.x];
  __syncwarp();
  y[threadIdx.x] = s;
}
// Two instructions are no choice but a race.
extern "C" __global__ void StoresOfTwoInstructions(const float* x, float* y, int n) {
  if (threadIdx.x % 2 == 0) {
    asm volatile("st.global.f32 [%0], %1;" ::"l"(y + threadIdx.x / 2), "f"(x[threadIdx.x]) : "memory");
  } else {
    asm volatile("st.global.f32 [%0], %1;" ::"l"(y + threadIdx.x / 2), "f"(-x[threadIdx.x]) : "memory");
  }
}

__device__ int arrived;
template <bool kFence>
__device__ void LastBlock(const float* x, volatile float* y) {
  y[blockIdx.x] = x[blockIdx.x];
  if (kFence) __threadfence();
  if (atomicAdd(&arrived, 1) != gridDim.x - 1) return;
  if (kFence) __threadfence();
  float sum = 0;
  for (int b = 0; b < gridDim.x; ++b) sum += y[b];
  y[gridDim.x] = sum;
  arrived = 0;
}
extern "C" __global__ void VolatilePartsFenced(const float* x, float* y, int n) { LastBlock<true>(x, y); }
extern "C" __global__ void VolatilePartsNotFenced(const float* x, float* y, int n) { LastBlock<false>(x, y); }
// One word is value and flag: no fence is needed. Block 3, which starts last, begins the chain.
extern "C" __global__ void ValueAndFlagInOneWord(const float* x, float* y, int n) {
  volatile float* sums = y;
  const int b = gridDim.x - 1 - blockIdx.x;
  float before = 0;
  while (b > 0 && (before = sums[b - 1]) < 0) {
  }
  sums[b] = before + fabsf(x[b]);
}

// Flags of two producers, `apart` words apart; the reader waits for the second flag only.
__device__ float parts[2];
__device__ int flags[16];
extern "C" __global__ void FlagsApart(float* y, int apart) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x < 2) {
    volatile char* flag = reinterpret_cast<volatile char*>(flags) + blockIdx.x * apart;
    parts[blockIdx.x] = 1;
    if (blockIdx.x == 1) {
      parts[1] = 2;
      __threadfence();
    }
    *flag = 1;
    return;
  }
  while (reinterpret_cast<volatile char*>(flags)[0] == 0) {
  }
  y[0] = parts[1];
}
// Blocks 0 and 1 release, at different places; block 2 waits for block 1 only.
extern "C" __global__ void ReleasedElsewhere(float* y, int n) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x < 2) {
    parts[blockIdx.x] = 1;
    __threadfence();
    atomicExch(&flags[4 * blockIdx.x], 1);
    return;
  }
  while (atomicAdd(&flags[4], 0) == 0) {
  }
  y[0] = parts[0];
}
// Warp 1 reads what warp 0 wrote, with no barrier, after that many events.
extern "C" __global__ void ManyEvents(float* y, int rounds) {
  __shared__ float s[2];
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(s));
  if (threadIdx.x == 0) s[0] = 1;
  if (threadIdx.x >= 32) {
#pragma unroll 1
    for (int i = 0; i < rounds; ++i) {
      asm volatile("st.shared.s32 [%0 + 4], %1;" ::"r"(at), "r"(i) : "memory");
      __syncwarp();
    }
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(y[threadIdx.x]) : "r"(at) : "memory");
  }
}
// Block 1 overwrites plainly what block 0 stores volatilely; `twice`: after its own volatile store.
extern "C" __global__ void VolatileThenPlain(float* y, int twice) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0 || twice != 0) *static_cast<volatile float*>(y) = 1;
  if (blockIdx.x == 1) asm volatile("st.global.f32 [%0], %1;" ::"l"(y), "f"(2.0f) : "memory");
}
// Lane 0 overwrites what lane 20 has read, or (`all`) all lanes have read at once, after half of the warp synchronised.
extern "C" __global__ void PartOfTheReaders(float* y, int all) {
  __shared__ float s;
  if (threadIdx.x == 0) s = 1;
  __syncwarp();
  float v = 0;
  if (all != 0 || threadIdx.x == 20) asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(static_cast<unsigned>(__cvta_generic_to_shared(&s))) : "memory");
  if (threadIdx.x < 16) __syncwarp(0xffff);
  if (threadIdx.x == 0) s = 2;
  y[threadIdx.x] = v;
}
// All blocks read the words, the last one then overwrites the first word. It waits for all but the last but two.
extern "C" __global__ void ReadByBlocksAndOverwritten(float* y, int words) {
  if (blockIdx.x + 1 < gridDim.x) {
    float sum = 0;
    for (int i = threadIdx.x; i < words; i += 32) sum += y[i];
    if (sum != 0) y[words + blockIdx.x] = sum;
    if (blockIdx.x + 3 == gridDim.x) return;
    __threadfence();
    atomicAdd(&arrived, 1);
  } else {
    if (threadIdx.x != 0) return;
    while (atomicAdd(&arrived, 0) != 32 * (gridDim.x - 2)) {
    }
    __threadfence();
    y[0] = 1;
  }
}

extern "C" __global__ void Printed(const float* x, float* y, int n) {
  y[threadIdx.x] = threadIdx.x == 0   ? printf("no arguments, %%\n")
                   : threadIdx.x == 1 ? printf("%d and %s\n", 7, "a word")
                                      : printf("%*.3f %c\n", 8, x[0], 'c');
}

// A sum that starts from nothing, in a function that stays one.
__device__ float Folded(const float* x, int count) {
  if (count <= 4) {
    float sum;
    for (int i = 0; i < count; ++i) sum += x[i];
    return sum;
  }
  return Folded(x, count / 2) + Folded(x + count / 2, count - count / 2);
}
extern "C" __global__ void SumOfNothingInARecursion(const float* x, float* y, int n) { y[threadIdx.x] = Folded(x, n / 128); }
