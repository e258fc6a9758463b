// problem: problems/matvec
// style: the vector staged in dynamic shared memory piece by piece, two rows a warp, __ldg
// cuda: correct
// sim: correct
constexpr int kPiece = 2048;

__global__ void MatVec(const float* __restrict__ x, const float* __restrict__ v, float* __restrict__ out, int rows,
                       int cols) {
  extern __shared__ float piece[];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  const int first = (blockIdx.x * warps + warp) * 2;
  float sum[2] = {0.0f, 0.0f};
  for (int start = 0; start < cols; start += kPiece) {
    const int length = min(kPiece, cols - start);
    __syncthreads();
    for (int i = threadIdx.x; i < length; i += blockDim.x) piece[i] = __ldg(v + start + i);
    __syncthreads();
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (first + r >= rows) continue;
      const float* row = x + static_cast<size_t>(first + r) * cols + start;
      for (int i = lane; i < length; i += 32) sum[r] += __ldg(row + i) * piece[i];
    }
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    for (int offset = 16; offset > 0; offset /= 2) sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], offset);
    if (lane == 0 && first + r < rows) out[first + r] = sum[r];
  }
}

extern "C" void launch(const float* x, const float* v, float* out, int rows, int cols) {
  MatVec<<<(rows + 15) / 16, 256, min(cols, kPiece) * sizeof(float)>>>(x, v, out, rows, cols);
}
