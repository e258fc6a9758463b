// problem: problems/channels_last
// style: a 3D grid, the batch along z in strides, 16 x 16 tiles in dynamic shared memory
// cuda: correct
// sim: correct
__global__ void ChannelsLast(const float* x, float* out, int batch, int rows, int cols, float scale) {
  extern __shared__ float tile[];  // [16][17]
  for (int b = blockIdx.z; b < batch; b += gridDim.z) {
    const size_t image = static_cast<size_t>(b) * rows * cols;
    const int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    if (row < rows && col < cols)
      tile[threadIdx.y * 17 + threadIdx.x] = x[image + static_cast<size_t>(row) * cols + col];
    __syncthreads();
    const int out_row = blockIdx.x * 16 + threadIdx.y, out_col = blockIdx.y * 16 + threadIdx.x;
    if (out_row < cols && out_col < rows) {
      out[image + static_cast<size_t>(out_row) * rows + out_col] = scale * tile[threadIdx.x * 17 + threadIdx.y];
    }
    __syncthreads();
  }
}

extern "C" void launch(const float* x, float* out, int batch, int rows, int cols, float scale) {
  const dim3 grid((cols + 15) / 16, (rows + 15) / 16, min(batch, 16));
  ChannelsLast<<<grid, dim3(16, 16), 16 * 17 * sizeof(float)>>>(x, out, batch, rows, cols, scale);
}
