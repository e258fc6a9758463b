// problem: problems/transpose
// style: a padded 32 x 33 tile, blocks of 32 x 8
// cuda: correct
// sim: correct
__global__ void Transpose(const float* __restrict__ x, float* __restrict__ out, int rows, int cols) {
  __shared__ float tile[32][33];
  int col = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
#pragma unroll
  for (int i = 0; i < 32; i += 8) {
    if (col < cols && row + i < rows) tile[threadIdx.y + i][threadIdx.x] = x[static_cast<size_t>(row + i) * cols + col];
  }
  __syncthreads();
  col = blockIdx.y * 32 + threadIdx.x;
  row = blockIdx.x * 32 + threadIdx.y;
#pragma unroll
  for (int i = 0; i < 32; i += 8) {
    if (col < rows && row + i < cols)
      out[static_cast<size_t>(row + i) * rows + col] = tile[threadIdx.x][threadIdx.y + i];
  }
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  Transpose<<<dim3((cols + 31) / 32, (rows + 31) / 32), dim3(32, 8)>>>(x, out, rows, cols);
}
