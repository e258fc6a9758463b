// problem: tests/evaluator/problems/row_sum
// style: two warps of three meet at a named barrier for 64 threads
// cuda: correct
// sim: correct
__global__ void Sum(const float* x, float* out) {
  __shared__ float tile[64];
  const int t = threadIdx.x;
  if (t >= 64) return;
  tile[t] = x[blockIdx.x * 64 + t];
  asm volatile("bar.sync 1, 64;" ::: "memory");
  if (t == 0) {
    float sum = 0;
    for (int k = 0; k < 64; ++k) sum += tile[k];
    out[blockIdx.x] = sum;
  }
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 96>>>(x, out); }
