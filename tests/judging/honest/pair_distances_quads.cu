// problem: problems/pair_distances
// style: four lanes a row, shuffles of width 4, threads beyond the end kept for the shuffles
// cuda: correct
// sim: correct
__global__ void Distances(const float* x, const float* y, float* out, int rows, int cols) {
  const int part = threadIdx.x % 4;
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 4;
  float sum = 0.0f;
  if (row < rows) {
    for (int col = part; col < cols; col += 4) {
      const float difference = x[(size_t)row * cols + col] - y[(size_t)row * cols + col];
      sum += difference * difference;
    }
  }
  sum += __shfl_down_sync(0xffffffffu, sum, 2, 4);
  sum += __shfl_down_sync(0xffffffffu, sum, 1, 4);
  if (part == 0 && row < rows) out[row] = __fsqrt_rn(sum);
}

extern "C" void launch(const float* x, const float* y, float* out, int rows, int cols) {
  Distances<<<(4 * rows + 127) / 128, 128>>>(x, y, out, rows, cols);
}
