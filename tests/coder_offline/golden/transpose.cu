// Transpose: out[c][r] = x[r][c].
// layout: x[rows][cols], out[cols][rows]
// schedule: transpose pad register=8 tile=32



// kernels: a block moves a 32x32 tile through shared memory, 8 elements a thread.
__global__ void transpose_kernel(const float* x, float* out, int rows, int cols) {
  __shared__ float tile[32][33];
  const int first_row = blockIdx.y * 32;
  const int first_col = blockIdx.x * 32;
  for (int line = threadIdx.y; line < 32; line += 4) {
    const int row = first_row + line;
    const int col = first_col + threadIdx.x;
    if (row < rows && col < cols) tile[line][threadIdx.x] = x[(size_t)row * cols + col];
  }
  __syncthreads();
  for (int line = threadIdx.y; line < 32; line += 4) {
    const int row = first_row + threadIdx.x;
    const int col = first_col + line;
    const size_t out_index = (size_t)col * rows + row;
    if (row < rows && col < cols) out[out_index] = tile[threadIdx.x][line];
  }
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  const dim3 blocks((cols + 31) / 32, (rows + 31) / 32);
  transpose_kernel<<<blocks, dim3(32, 4)>>>(x, out, rows, cols);
}
