// problem: tests/evaluator/problems/row_stencil
// bug: the left neighbour of the very first element is read, before the array
// finding: out_of_bounds in Stencil: reads 4 bytes out of bounds, 4 bytes before 'x' (9600 bytes)
__global__ void Stencil(const float* x, float* out, int rows, int cols) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows * cols) return;
  const int col = i % cols;
  const float left = x[i - 1];  // found
  const float right = col + 1 < cols ? x[i + 1] : 0.0f;
  out[i] = (col > 0 ? left : 0.0f) + right;
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  Stencil<<<(rows * cols + 127) / 128, 128>>>(x, out, rows, cols);
}
