// problem: tests/evaluator/problems/row_sum
// style: every lane adds up the row, each in another order, and stores its sum to the same place
// cuda: correct
// sim: correct
__global__ void Sum(const float* x, float* out) {
  float sum = 0;
  for (int k = 0; k < 64; ++k) sum += x[blockIdx.x * 64 + (threadIdx.x + k) % 64];
  out[blockIdx.x] = sum;
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 32>>>(x, out); }
