// problem: tests/evaluator/problems/row_sum
// bug: the mask names the lower half, all lanes take part
// finding: divergent in Sum: uses a warp operation whose mask does not name its own lane
__global__ void Sum(const float* x, float* out) {
  const int t = threadIdx.x;
  float v = x[blockIdx.x * 64 + t] + x[blockIdx.x * 64 + t + 32];
  v += __shfl_down_sync(0xffffffffu, v, 16);
  v += __shfl_down_sync(0xffffu, v, 8);  // found
  v += __shfl_down_sync(0xffffu, v, 4);
  v += __shfl_down_sync(0xffffu, v, 2);
  v += __shfl_down_sync(0xffffu, v, 1);
  if (t == 0) out[blockIdx.x] = v;
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 32>>>(x, out); }
