// problem: problems/row_norms
// bug: warps take different numbers of turns of a loop that has a barrier
// finding: divergent in Norms: waits at
__global__ void Norms(const float* x, float* out, int cols) {
  __shared__ float s[64];
  float sum = 0;
#pragma unroll 1
  for (int c = threadIdx.x; c < cols; c += 64) {
    const float v = x[static_cast<size_t>(blockIdx.x) * cols + c];
    s[threadIdx.x] = v * v;
    __syncthreads();  // found
    sum += s[threadIdx.x];
  }
  s[threadIdx.x] = sum;
  __syncthreads();  // found
  if (threadIdx.x == 0) {
    float total = 0;
    for (int k = 0; k < 64; ++k) total += s[k];
    out[blockIdx.x] = sqrtf(total);
  }
}

extern "C" void launch(const float* x, float* out, int rows, int cols) { Norms<<<rows, 64>>>(x, out, cols); }
