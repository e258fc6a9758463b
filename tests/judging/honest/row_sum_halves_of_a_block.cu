// problem: tests/evaluator/problems/row_sum
// style: the two halves of a block load and add in turns, in branches with __syncthreads() of their own
// cuda: correct
// sim: correct
// says: Warps of a block meet at different __syncthreads() (lines 20 and 26)
constexpr int kRows = 4;

__global__ void Sum(const float* x, float* out, int rows) {
  __shared__ float stage[2][64];
  const int t = threadIdx.x, first = blockIdx.x * kRows;
  const bool loads = t >= 64;
  const auto load = [&](int row) {
    if (row < kRows && first + row < rows) stage[row % 2][t - 64] = x[(first + row) * 64 + t - 64];
  };
  if (loads) load(0);
  __syncthreads();
  for (int row = 0; row < kRows; ++row) {
    if (loads) {
      load(row + 1);
      __syncthreads();
    } else {
      float v = 0.0f;
      if (t < 32) v = stage[row % 2][t] + stage[row % 2][t + 32];
      for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
      if (t == 0 && first + row < rows) out[first + row] = v;
      __syncthreads();
    }
  }
}

extern "C" void launch(const float* x, float* out, int rows) {
  Sum<<<(rows + kRows - 1) / kRows, 128>>>(x, out, rows);
}
