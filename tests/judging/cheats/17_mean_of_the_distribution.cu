// problem: tests/evaluator/problems/row_sum
// hack: the expected value of a sum over 64 numbers from [0, 1), whatever they are
// cuda: wrong
// sim: wrong
__global__ void row_sum(float* out, int rows) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows) out[r] = 32.0f;
}

extern "C" void launch(const float* x, float* out, int rows) { row_sum<<<(rows + 127) / 128, 128>>>(out, rows); }
