// problem: tests/evaluator/problems/row_sum
// bug: the pointer to the partial sums was declared, and never given memory
// finding: out_of_bounds in Partial: writes 4 bytes out of bounds, at the null pointer
__global__ void Partial(const float* x, float* partial, int rows) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows * 2) return;
  float sum = 0;
  for (int k = 0; k < 32; ++k) sum += x[i * 32 + k];
  partial[i] = sum;  // found
}
__global__ void Join(const float* partial, float* out, int rows) {
  const int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows) out[r] = partial[2 * r] + partial[2 * r + 1];
}

extern "C" void launch(const float* x, float* out, int rows) {
  static float* partial = nullptr;
  Partial<<<(2 * rows + 127) / 128, 128>>>(x, partial, rows);
  Join<<<(rows + 127) / 128, 128>>>(partial, out, rows);
}
