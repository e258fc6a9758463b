// problem: problems/dot_product
// style: a lock by atomicCAS around a compensated total in global memory; the last block writes it out and clears
// cuda: correct
// sim: correct
__device__ int lock;
__device__ volatile double total;
__device__ volatile unsigned blocks_done;

__global__ void Dot(const float* a, const float* b, float* out, int n) {
  __shared__ float of_warp[8];
  float sum = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += a[i] * b[i];
  for (int d = 16; d > 0; d >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, d);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  double of_block = 0.0;
  for (int w = 0; w < 8; ++w) of_block += of_warp[w];
  while (atomicCAS(&lock, 0, 1) != 0) __nanosleep(100);
  __threadfence();
  const double now = total + of_block;
  const unsigned done = blocks_done + 1;
  if (done == gridDim.x) {
    *out = static_cast<float>(now);
    total = 0.0;
    blocks_done = 0;
  } else {
    total = now;
    blocks_done = done;
  }
  __threadfence();
  atomicExch(&lock, 0);
}

extern "C" void launch(const float* a, const float* b, float* out, int n) {
  Dot<<<min((n + 255) / 256, 264), 256>>>(a, b, out, n);
}
