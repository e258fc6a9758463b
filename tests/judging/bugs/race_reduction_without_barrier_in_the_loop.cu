// problem: problems/row_norms
// bug: one barrier before the tree, none between its steps
// twin: honest/row_norms_float4_double
// finding: race in Norms: shared array 's' (1024 bytes), barrier between
__global__ void Norms(const float* x, float* out, int cols) {
  __shared__ float s[256];
  float sum = 0;
  for (int c = threadIdx.x; c < cols; c += 256) {
    const float v = x[static_cast<size_t>(blockIdx.x) * cols + c];
    sum += v * v;
  }
  s[threadIdx.x] = sum;
  __syncthreads();
#pragma unroll 1
  for (int d = 128; d > 0; d /= 2) {
    if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];  // found
  }
  if (threadIdx.x == 0) out[blockIdx.x] = sqrtf(s[0]);
}

extern "C" void launch(const float* x, float* out, int rows, int cols) { Norms<<<rows, 256>>>(x, out, cols); }
