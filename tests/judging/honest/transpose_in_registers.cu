// problem: problems/transpose
// style: a warp transposes 32 x 32 by shuffles in registers alone (butterflies), no shared memory
// cuda: correct
// sim: correct
__global__ __launch_bounds__(32) void Transpose(const float* x, float* out, int rows, int cols) {
  const int lane = threadIdx.x, first_row = blockIdx.y * 32, first_col = blockIdx.x * 32;
  float v[32];
#pragma unroll
  for (int r = 0; r < 32; ++r) {
    const bool inside = first_row + r < rows && first_col + lane < cols;
    v[r] = inside ? x[static_cast<size_t>(first_row + r) * cols + first_col + lane] : 0.0f;
  }
  // Swaps the off-diagonal quarters of every 2d x 2d block.
#pragma unroll
  for (int d = 16; d > 0; d /= 2) {
#pragma unroll
    for (int r = 0; r < 32; ++r) {
      if (r & d) continue;
      const bool upper = (lane & d) != 0;
      const float give = upper ? v[r] : v[r + d];
      const float got = __shfl_xor_sync(0xffffffffu, give, d);
      if (upper) {
        v[r] = got;
      } else {
        v[r + d] = got;
      }
    }
  }
#pragma unroll
  for (int c = 0; c < 32; ++c) {
    const bool inside = first_col + c < cols && first_row + lane < rows;
    if (inside) out[static_cast<size_t>(first_col + c) * rows + first_row + lane] = v[c];
  }
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  Transpose<<<dim3((cols + 31) / 32, (rows + 31) / 32), 32>>>(x, out, rows, cols);
}
