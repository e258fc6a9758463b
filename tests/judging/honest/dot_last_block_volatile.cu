// problem: problems/dot_product
// style: the last block to finish joins volatile partial sums: fence, ticket, fence
// cuda: correct
// sim: correct
__device__ volatile float partial[256];
__device__ unsigned tickets;

__global__ void Dot(const float* a, const float* b, float* out, int n) {
  float v = 0;
  for (int i = blockIdx.x * 32 + threadIdx.x; i < n; i += gridDim.x * 32) v += a[i] * b[i];
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
  if (threadIdx.x != 0) return;
  partial[blockIdx.x] = v;
  __threadfence();
  if (atomicInc(&tickets, gridDim.x - 1) != gridDim.x - 1) return;
  __threadfence();
  float sum = 0;
  for (int i = 0; i < gridDim.x; ++i) sum += partial[i];
  out[0] = sum;
}

extern "C" void launch(const float* a, const float* b, float* out, int n) {
  Dot<<<n < 8192 ? (n + 31) / 32 : 256, 32>>>(a, b, out, n);
}
