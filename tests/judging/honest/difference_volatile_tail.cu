// problem: problems/sum_absolute_difference
// style: the older tree: shared memory halved to a warp, then volatile with __syncwarp between read and write
// cuda: correct
// sim: correct
constexpr int kThreads = 256;
__device__ float sums[512];

template <int kBlock>
__device__ void Reduce(volatile float* s, int t) {
  if (kBlock >= 256) {
    if (t < 128) s[t] = s[t] + s[t + 128];
    __syncthreads();
  }
  if (kBlock >= 128) {
    if (t < 64) s[t] = s[t] + s[t + 64];
    __syncthreads();
  }
  if (t < 32) {
    float v = s[t];
    v += s[t + 32];
    __syncwarp();
    s[t] = v;
    __syncwarp();
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) {
      if (t + d < 32) v += s[t + d];
      __syncwarp();
      s[t] = v;
      __syncwarp();
    }
  }
}

__global__ void First(const float* a, const float* b, int n) {
  __shared__ float s[kThreads];
  float v = 0.0f;
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < n; i += gridDim.x * kThreads) v += fabsf(a[i] - b[i]);
  s[threadIdx.x] = v;
  __syncthreads();
  Reduce<kThreads>(s, threadIdx.x);
  if (threadIdx.x == 0) sums[blockIdx.x] = s[0];
}

__global__ void Second(float* out, int blocks, int n) {
  __shared__ float s[kThreads];
  float v = 0.0f;
  for (int i = threadIdx.x; i < blocks; i += kThreads) v += sums[i];
  s[threadIdx.x] = v;
  __syncthreads();
  Reduce<kThreads>(s, threadIdx.x);
  if (threadIdx.x == 0) *out = s[0] / static_cast<float>(n);
}

extern "C" void launch(const float* a, const float* b, float* out, int n) {
  const int needed = (n + kThreads - 1) / kThreads;
  const int blocks = needed < 512 ? needed : 512;
  First<<<blocks, kThreads>>>(a, b, n);
  Second<<<1, kThreads>>>(out, blocks, n);
}
