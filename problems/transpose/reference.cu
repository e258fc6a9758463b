// Transpose: out[c][r] = x[r][c].
// layout: x[rows][cols], out[cols][rows]
// schedule: transpose



// kernels: a thread moves one element, reads are coalesced.
__global__ void transpose_kernel(const float* x, float* out, int rows, int cols) {
  const int row = blockIdx.y * 16 + threadIdx.y;
  const int col = blockIdx.x * 16 + threadIdx.x;
  if (row >= rows || col >= cols) return;
  const size_t out_index = (size_t)col * rows + row;
  out[out_index] = x[(size_t)row * cols + col];
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  const dim3 blocks((cols + 15) / 16, (rows + 15) / 16);
  transpose_kernel<<<blocks, dim3(16, 16)>>>(x, out, rows, cols);
}
