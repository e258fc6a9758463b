// problem: problems/row_norms
// bug: the sums of all 32 warps are added, though smaller blocks have fewer
// twin: honest/row_norms_warps_that_exist
// finding: uninitialised in Norms: that no thread of the block has written yet, shared array 's' (128 bytes)
__global__ void Norms(const float* __restrict__ x, float* __restrict__ out, int cols) {
  __shared__ float s[32];
  float v = 0;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) v += x[blockIdx.x * cols + c] * x[blockIdx.x * cols + c];
  for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(0xffffffffu, v, o);
  if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x == 0) {
    float sum = s[0];
#pragma unroll
    for (int w = 1; w < 32; ++w)
      if (w < blockDim.x) sum += s[w];  // found
    out[blockIdx.x] = sqrtf(sum);
  }
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  Norms<<<rows, cols < 1024 ? (cols + 31) / 32 * 32 : 1024>>>(x, out, cols);
}
