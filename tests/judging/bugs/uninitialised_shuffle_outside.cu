// problem: problems/row_norms
// bug: four lanes add the warps' sums, but the loop starts at an offset of 16: lanes outside of the mask are read
// twin: honest/row_norms_warps_that_exist
// finding: uninitialised in Norms: by a shuffle in which that lane takes no part
__global__ void Norms(const float* __restrict__ x, float* __restrict__ out, int cols) {
  __shared__ float s[4];
  const unsigned t = threadIdx.x;
  float v = 0;
  for (int c = t; c < cols; c += 128) v += x[blockIdx.x * cols + c] * x[blockIdx.x * cols + c];
  for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(0xffffffffu, v, o);
  if (t % 32 == 0) s[t / 32] = v;
  __syncthreads();
  if (t >= 4) return;
  v = s[t];
  for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(0xfu, v, o);  // found
  if (t == 0) out[blockIdx.x] = sqrtf(v);
}

extern "C" void launch(const float* x, float* out, int rows, int cols) { Norms<<<rows, 128>>>(x, out, cols); }
