// problem: problems/dot_product
// style: a spin lock around a plain sum, fences inside the lock
// cuda: correct
// sim: correct
__device__ int lock;
__device__ float total;
__device__ unsigned done;

__global__ void Clear() {
  lock = 0;
  total = 0;
}
__global__ void Dot(const float* a, const float* b, int n) {
  float v = 0;
  for (int i = blockIdx.x * 32 + threadIdx.x; i < n; i += gridDim.x * 32) v += a[i] * b[i];
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
  if (threadIdx.x != 0) return;
  while (atomicCAS(&lock, 0, 1) != 0) {
  }
  __threadfence();
  total += v;
  __threadfence();
  atomicExch(&lock, 0);
}
__global__ void Finish(float* out) { out[0] = total; }

extern "C" void launch(const float* a, const float* b, float* out, int n) {
  const int needed = (n + 31) / 32;
  Clear<<<1, 1>>>();
  Dot<<<needed < 64 ? needed : 64, 32>>>(a, b, n);
  Finish<<<1, 1>>>(out);
}
