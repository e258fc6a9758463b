// problem: tests/evaluator/problems/padded_rows
// hack: takes the rows to lie one after the other
// cuda: out_of_bounds
// sim: out_of_bounds
__global__ void Centre(const float* x, float* out, int cols) {
  const size_t start = static_cast<size_t>(blockIdx.x) * cols;
  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += 32) sum += x[start + c];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  for (int c = threadIdx.x; c < cols; c += 32) out[start + c] = x[start + c] - sum / cols;
}

extern "C" void launch(const float* x, float* out, int rows, int cols, int) {
  Centre<<<rows, 32>>>(x, out, cols);
}
