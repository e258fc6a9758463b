// problem: problems/transpose
// bug: a tile of 32 x 32 for blocks of 32 x 8 threads that step by 8 up to 40 rows
// finding: out_of_bounds in Transpose: writes 4 bytes out of bounds, past the end of shared array 'tile' (4224 bytes)
__global__ void Transpose(const float* x, float* out, int rows, int cols) {
  __shared__ float tile[32][33];
  const int col = blockIdx.x * 32 + threadIdx.x;
#pragma unroll 1
  for (int k = 0; k <= 32; k += 8) {
    const int row = blockIdx.y * 32 + k + threadIdx.y;
    tile[k + threadIdx.y][threadIdx.x] = row < rows && col < cols ? x[row * cols + col] : 0.0f;  // found
  }
  __syncthreads();
  for (int k = 0; k < 32; k += 8) {
    const int to_row = blockIdx.x * 32 + k + threadIdx.y, to_col = blockIdx.y * 32 + threadIdx.x;
    if (to_row < cols && to_col < rows) out[to_row * rows + to_col] = tile[threadIdx.x][k + threadIdx.y];
  }
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  Transpose<<<dim3((cols + 31) / 32, (rows + 31) / 32), dim3(32, 8)>>>(x, out, rows, cols);
}
