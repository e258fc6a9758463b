// Transpose and swish: out[c][r] = swish(x[r][c]) + y[c][r].
// layout: x[rows][cols], y[cols][rows], out[cols][rows]
// schedule: transpose

__device__ float apply(float value, float y) { return fdividef(value, 1.0f + expf(-value)) + y; }

// kernels: a thread moves one element, reads are coalesced.
__global__ void transpose_kernel(const float* x, const float* y, float* out, int rows, int cols) {
  const int row = blockIdx.y * 16 + threadIdx.y;
  const int col = blockIdx.x * 16 + threadIdx.x;
  if (row >= rows || col >= cols) return;
  const size_t out_index = (size_t)col * rows + row;
  out[out_index] = x[(size_t)row * cols + col];
}

__global__ void apply_kernel(const float* x, const float* y, float* out, int rows, int cols) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < (size_t)rows * cols) out[i] = apply(out[i], y[i]);
}

extern "C" void launch(const float* x, const float* y, float* out, int rows, int cols) {
  const dim3 blocks((cols + 15) / 16, (rows + 15) / 16);
  transpose_kernel<<<blocks, dim3(16, 16)>>>(x, y, out, rows, cols);
  apply_kernel<<<((size_t)rows * cols + 255) / 256, 256>>>(x, y, out, rows, cols);
}
