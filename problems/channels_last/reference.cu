// Channels last: out[b][c][r] = scale * x[b][r][c].
// layout: x[batch][rows][cols], out[batch][cols][rows]
// schedule: transpose

__device__ float apply(float value, float scale) { return value * scale; }

// kernels: a thread moves one element, reads are coalesced.
__global__ void transpose_kernel(const float* x, float* out, int batch, int rows, int cols, float scale) {
  const int row = blockIdx.y * 16 + threadIdx.y;
  const int col = blockIdx.x * 16 + threadIdx.x;
  if (row >= rows || col >= cols) return;
  const size_t offset = (size_t)blockIdx.z * rows * cols;
  const size_t out_index = offset + (size_t)col * rows + row;
  out[out_index] = x[offset + (size_t)row * cols + col];
}

__global__ void apply_kernel(const float* x, float* out, int batch, int rows, int cols, float scale) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < (size_t)batch * rows * cols) out[i] = apply(out[i], scale);
}

extern "C" void launch(const float* x, float* out, int batch, int rows, int cols, float scale) {
  const dim3 blocks((cols + 15) / 16, (rows + 15) / 16, batch);
  transpose_kernel<<<blocks, dim3(16, 16)>>>(x, out, batch, rows, cols, scale);
  apply_kernel<<<((size_t)batch * rows * cols + 255) / 256, 256>>>(x, out, batch, rows, cols, scale);
}
