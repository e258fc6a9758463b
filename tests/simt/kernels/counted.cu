// Kernels whose accesses the counter tells apart: one thing each, so that what it should say is plain.
#include <cuda_fp16.h>

// Each thread writes the first 4 or 16 bytes of a 32-byte sector of its own; or all write side by side.
extern "C" __global__ void StoreEighths(float* out) {
  out[threadIdx.x * 8] = 1;
}
extern "C" __global__ void StoreHalves(float4* out) {
  out[threadIdx.x * 2] = make_float4(1, 2, 3, 4);
}
// Neighbours that each thread stores one after the other.
extern "C" __global__ void StoreFour(float* out) {
  for (int j = 0; j < 4; ++j) out[threadIdx.x * 4 + j] = j;
}
extern "C" __global__ void StoreEight(float* out) {
  for (int j = 0; j < 8; ++j) out[threadIdx.x * 8 + j] = j;
}
extern "C" __global__ void StoreWhole(float* out) {
  out[threadIdx.x] = 1;
}

// All lanes load the same 16 bytes, or each its own.
extern "C" __global__ void LoadOne(const float4* x, float4* out) {
  out[threadIdx.x] = x[blockIdx.x];
}
extern "C" __global__ void LoadOwn(const float4* x, float4* out) {
  out[threadIdx.x] = x[threadIdx.x];
}
extern "C" __global__ void LoadOneShared(float* out, int place) {
  __shared__ __align__(16) float4 tile[32];
  tile[threadIdx.x] = make_float4(threadIdx.x, 1, 2, 3);
  __syncthreads();
  const float4 one = tile[place];
  out[threadIdx.x] = one.x + one.y + one.z + one.w;
}

// Four turns, each of which loads, meets the block and goes on from what the others loaded. Loads that are known to read
// what nobody writes may begin before the barriers.
template <typename Pointer>
__device__ void Meet(Pointer x, float* out) {
  __shared__ float shared[64];
  float sum = 0;
#pragma unroll
  for (int turn = 0; turn < 4; ++turn) {
    shared[threadIdx.x] = x[turn * 64 + threadIdx.x];
    __syncthreads();
    sum += shared[63 - threadIdx.x];
    __syncthreads();
  }
  out[threadIdx.x] = sum;
}
extern "C" __global__ void MeetReadOnly(const float* __restrict__ x, float* __restrict__ out) {
  Meet(x, out);
}
extern "C" __global__ void MeetVolatile(const volatile float* x, float* out) {
  Meet(x, out);
}

// Reads threadIdx.x and threadIdx.y, and shuffles twice.
extern "C" __global__ void ShuffleTwice(const float* x, float* out) {
  const int place = threadIdx.y * 32 + threadIdx.x;
  float value = x[place];
  value += __shfl_xor_sync(0xffffffffu, value, 1);
  value += __shfl_xor_sync(0xffffffffu, value, 2);
  out[place] = value;
}

// A loop unrolled by the compiler, with a way out before each of its loads.
extern "C" __global__ void SumStrided(const float* __restrict__ x, float* out, int count) {
  float sum = 0;
#pragma unroll 4
  for (int i = threadIdx.x; i < count; i += blockDim.x) sum += x[i];
  out[threadIdx.x] = sum;
}

// Atomics at an address that the data choose, or at one for all.
extern "C" __global__ void CountBins(const int* x, int* bins) {
  atomicAdd(&bins[x[blockIdx.x * blockDim.x + threadIdx.x] & 15], 1);
}
extern "C" __global__ void CountAll(const int* x, int* bins) {
  atomicAdd(&bins[blockIdx.x & 15], x[blockIdx.x * blockDim.x + threadIdx.x]);
}

// Atomics: one lane of a warp, all lanes at one address, all lanes side by side.
extern "C" __global__ void AddOneLane(float* sums) {
  if (threadIdx.x % 32 == 0) atomicAdd(&sums[0], 1.0f);
}
extern "C" __global__ void AddAtOne(const int* x, int* sums) { atomicAdd(&sums[x[threadIdx.x] & 2], 1); }
extern "C" __global__ void AddFloatsAtOne(const int* x, float* sums) { atomicAdd(&sums[x[threadIdx.x] & 2], 1.0f); }
extern "C" __global__ void AddSideBySide(int* sums) { atomicAdd(&sums[threadIdx.x], 1); }

// A class whose copies are functions of their own: their place is the class's definition.
struct alignas(16) Pack {
  __half2 h[4];
};
extern "C" __global__ void CopyPacks(const Pack* in, Pack* out) {
  Pack pack = in[threadIdx.x];  // copied here
  for (int k = 0; k < 4; ++k) pack.h[k] = __hadd2(pack.h[k], pack.h[k]);
  out[threadIdx.x] = pack;  // copied here
}

// A sum with an atomic for each thread, for each warp, and for each block.
__device__ float StridedSum(const float* x, int n) {
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  return sum;
}
__device__ float WarpSum(float sum) {
  for (int o = 16; o > 0; o /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  return sum;
}
extern "C" __global__ void SumByThread(const float* x, float* sum, int n) { atomicAdd(sum, StridedSum(x, n)); }
extern "C" __global__ void SumByWarp(const float* x, float* sum, int n) {
  const float warp = WarpSum(StridedSum(x, n));
  if (threadIdx.x % 32 == 0) atomicAdd(sum, warp);
}
extern "C" __global__ void SumByBlock(const float* x, float* sum, int n) {
  __shared__ float warps[32];
  const float warp = WarpSum(StridedSum(x, n));
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = warp;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  const float block = WarpSum(threadIdx.x < blockDim.x / 32 ? warps[threadIdx.x] : 0);
  if (threadIdx.x == 0) atomicAdd(sum, block);
}
