#include <cuda_runtime.h>

__global__ void reduce(const float* g_idata, float* g_odata, int n) {
  extern __shared__ float sdata[];
  unsigned int tid = threadIdx.x;
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  float mine = 0.0f;
  for (; i < n; i += blockDim.x * gridDim.x) mine += g_idata[i];
  sdata[tid] = mine;
  __syncthreads();
  for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (tid < s) {
      sdata[tid] += sdata[tid + s];
    }
    __syncthreads();
  }
  if (tid == 0) g_odata[blockIdx.x] = sdata[0];
}

extern "C" void launch(const float* x, float* out, int n) {
  const int threads = 256;
  float* partial;
  cudaMalloc(&partial, 128 * sizeof(float));
  reduce<<<128, threads, threads * sizeof(float)>>>(x, partial, n);
  reduce<<<1, threads, threads * sizeof(float)>>>(partial, out, 128);
  cudaFree(partial);
}
