// problem: problems/transpose
// bug: a warp turns a tile of its own, with nothing between writing its rows and reading its columns
// twin: honest/transpose_warp_tile
// finding: race in Transpose: reads, shared array 'tile' (4224 bytes), writes, no __syncwarp() or barrier between
__global__ void Transpose(const float* x, float* out, int rows, int cols) {
  __shared__ float tile[32][33];
  const int lane = threadIdx.x, row = blockIdx.y * 32, col = blockIdx.x * 32;
#pragma unroll 1
  for (int k = 0; k < 32; ++k) {
    const bool inside = row + k < rows && col + lane < cols;
    tile[k][lane] = inside ? x[(row + k) * cols + col + lane] : 0.0f;  // found
  }
#pragma unroll 1
  for (int k = 0; k < 32; ++k) {
    if (col + k < cols && row + lane < rows) {
      out[(col + k) * rows + row + lane] = tile[lane][k];  // found
    }
  }
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  Transpose<<<dim3((cols + 31) / 32, (rows + 31) / 32), 32>>>(x, out, rows, cols);
}
