// problem: tests/evaluator/problems/row_sum
// bug: the two halves of a warp wait at different barriers
// finding: divergent in Sum: waits at a barrier that the rest of its warp
__global__ void Sum(const float* x, float* out) {
  __shared__ float tile[64];
  const int t = threadIdx.x;
  const float v = x[blockIdx.x * 64 + t];
  if (t % 2 == 0) {
    tile[t] = v;
    __syncthreads();  // found
    tile[t] += tile[t + 1];
  } else {
    tile[t] = v * 1.0f;
    __syncthreads();  // found
    tile[t] *= 0.5f;
  }
  __syncthreads();
  if (t == 0) {
    float sum = 0;
    for (int k = 0; k < 64; k += 2) sum += tile[k];
    out[blockIdx.x] = sum;
  }
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 64>>>(x, out); }
