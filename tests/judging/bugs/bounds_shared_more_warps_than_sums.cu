// problem: problems/dot_product
// bug: eight sums of warps for a block of 512 threads, which has 16 warps
// finding: out_of_bounds in Dot: writes 4 bytes out of bounds, past the end of shared array 'of_warp' (32 bytes)
__global__ void Dot(const float* a, const float* b, float* out, int n) {
  __shared__ float of_warp[8];
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += a[i] * b[i];
  for (int d = 16; d > 0; d >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, d);
  if ((threadIdx.x & 31) == 0) of_warp[threadIdx.x >> 5] = sum;  // found
  __syncthreads();
  if (threadIdx.x == 0) {
    float total = 0;
    for (int w = 0; w < blockDim.x / 32; ++w) total += of_warp[w];
    out[0] = total;
  }
}

extern "C" void launch(const float* a, const float* b, float* out, int n) { Dot<<<1, 512>>>(a, b, out, n); }
