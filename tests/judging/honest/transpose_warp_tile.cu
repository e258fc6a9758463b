// problem: problems/transpose
// style: each warp turns a tile of its own in shared memory, ordered by __syncwarp() alone
// cuda: correct
// sim: correct
__global__ void Transpose(const float* x, float* out, int rows, int cols) {
  __shared__ float tile[32][33];
  const int lane = threadIdx.x, row = blockIdx.y * 32, col = blockIdx.x * 32;
#pragma unroll 1
  for (int k = 0; k < 32; ++k) {
    const bool inside = row + k < rows && col + lane < cols;
    tile[k][lane] = inside ? x[(row + k) * cols + col + lane] : 0.0f;
  }
  __syncwarp();
#pragma unroll 1
  for (int k = 0; k < 32; ++k) {
    if (col + k < cols && row + lane < rows) {
      out[(col + k) * rows + row + lane] = tile[lane][k];
    }
  }
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  Transpose<<<dim3((cols + 31) / 32, (rows + 31) / 32), 32>>>(x, out, rows, cols);
}
