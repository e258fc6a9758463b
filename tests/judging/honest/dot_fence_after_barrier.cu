// problem: problems/dot_product
// style: the whole block writes, a barrier, then one thread's fence and atomic publish for all (cumulative fences)
// cuda: correct
// sim: correct
constexpr int kThreads = 128, kMostBlocks = 256;
__device__ float4 partials[kMostBlocks][kThreads / 4];
__device__ unsigned done;

__global__ void Dot(const float* a, const float* b, float* out, int n) {
  __shared__ bool last;
  __shared__ float of_warp[kThreads / 32];
  float sum = 0.0f;
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < n; i += gridDim.x * kThreads) sum += a[i] * b[i];
  reinterpret_cast<float*>(partials[blockIdx.x])[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(&done, 1u) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!last) return;
  sum = 0.0f;
  for (int i = threadIdx.x; i < gridDim.x * (kThreads / 4); i += kThreads) {
    const float4 v = __ldcg(&partials[0][0] + i);
    sum += (v.x + v.y) + (v.z + v.w);
  }
  for (int d = 16; d > 0; d >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    *out = of_warp[0] + of_warp[1] + of_warp[2] + of_warp[3];
    done = 0;
  }
}

extern "C" void launch(const float* a, const float* b, float* out, int n) {
  Dot<<<min((n + kThreads - 1) / kThreads, kMostBlocks), kThreads>>>(a, b, out, n);
}
