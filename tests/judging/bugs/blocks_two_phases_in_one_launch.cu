// problem: problems/dot_product
// bug: block 0 joins the partial sums in the launch that makes them, as if blocks ran one after the other
// twin: honest/dot_double_reduce
// finding: race in Dot: reads, 'partial' (1024 bytes), writes, no synchronisation of the blocks
__device__ float partial[256];

__global__ void Dot(const float* a, const float* b, float* out, int n) {
  const int block = gridDim.x - 1 - blockIdx.x;
  float v = 0;
  for (int i = block * 32 + threadIdx.x; i < n; i += gridDim.x * 32) v += a[i] * b[i];
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
  if (threadIdx.x == 0) partial[block] = v;  // found
  if (block == 0 && threadIdx.x == 0) {
    float sum = 0;
#pragma unroll 1
    for (int b = 0; b < gridDim.x; ++b) sum += partial[b];  // found
    out[0] = sum;
  }
}

extern "C" void launch(const float* a, const float* b, float* out, int n) {
  Dot<<<n < 8192 ? (n + 31) / 32 : 256, 32>>>(a, b, out, n);
}
