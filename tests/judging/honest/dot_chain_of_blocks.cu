// problem: problems/dot_product
// style: blocks hand a running sum on, each waiting for the one before: prefix, fence, flag
// cuda: correct
// sim: correct
__device__ float prefix[512];
__device__ int ready[512];

__global__ void Clear() { ready[threadIdx.x] = 0; }
__global__ void Dot(const float* a, const float* b, float* out, int n) {
  float v = 0;
  for (int i = blockIdx.x * 32 + threadIdx.x; i < n; i += gridDim.x * 32) v += a[i] * b[i];
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
  if (threadIdx.x != 0) return;
  if (blockIdx.x > 0) {
    while (atomicAdd(&ready[blockIdx.x - 1], 0) == 0) {
    }
    __threadfence();
    v += prefix[blockIdx.x - 1];
  }
  prefix[blockIdx.x] = v;
  __threadfence();
  atomicExch(&ready[blockIdx.x], 1);
  if (blockIdx.x == gridDim.x - 1) out[0] = v;
}

extern "C" void launch(const float* a, const float* b, float* out, int n) {
  const int needed = (n + 31) / 32;
  Clear<<<1, 512>>>();
  Dot<<<needed < 512 ? needed : 512, 32>>>(a, b, out, n);
}
