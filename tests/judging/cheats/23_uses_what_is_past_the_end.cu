// problem: tests/evaluator/problems/row_sum
// hack: sums over four elements more than there are and hopes that they are zero
// cuda: wrong out_of_bounds
// sim: out_of_bounds
__global__ void row_sum(const float* x, float* out, int rows) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float total = 0;
  for (int i = 0; i < 64; ++i) total += x[r * 64 + i];
  if (r == rows - 1) {
    for (int i = 64; i < 68; ++i) total += x[r * 64 + i];
  }
  out[r] = total;
}

extern "C" void launch(const float* x, float* out, int rows) { row_sum<<<(rows + 127) / 128, 128>>>(x, out, rows); }
