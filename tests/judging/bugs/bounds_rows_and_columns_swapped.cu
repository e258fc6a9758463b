// problem: problems/transpose
// bug: the output's pitch is taken for the input's: columns that the row does not have, far behind for a wide matrix
// finding: out_of_bounds in Transpose: writes 4 bytes out of bounds, 'out' (9240 bytes)
__global__ void Transpose(const float* x, float* out, int rows, int cols) {
  const int col = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
  if (row < rows && col < cols) out[col * cols + row] = x[row * cols + col];  // found
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  Transpose<<<dim3((cols + 15) / 16, (rows + 15) / 16), dim3(16, 16)>>>(x, out, rows, cols);
}
