// problem: tests/evaluator/problems/row_sum
// bug: one warp votes at __syncthreads_or() while the other meets it at __syncthreads(): its vote is undefined
// finding: divergent in Sum: waits at barrier 0 while other warps do something else there
__global__ void Sum(const float* x, float* out) {
  __shared__ float tile[64];
  const int t = threadIdx.x;
  tile[t] = x[blockIdx.x * 64 + t];
  bool any = false;
  if (t < 32) {
    any = __syncthreads_or(tile[t] != 0.0f);  // found
  } else {
    __syncthreads();  // found
  }
  if (t == 0) {
    float sum = 0;
    for (int k = 0; k < 64; ++k) sum += tile[k];
    out[blockIdx.x] = any ? sum : 0.0f;
  }
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 64>>>(x, out); }
