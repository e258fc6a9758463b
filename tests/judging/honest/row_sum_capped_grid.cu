// problem: tests/evaluator/problems/row_sum
// style: at most 264 blocks, each of which sums several rows at the timing size only
// sim: correct
// cuda: correct
__global__ void Sum(const float* x, float* out, int rows) {
  __shared__ float of_warp[2];
  for (int r = blockIdx.x; r < rows; r += gridDim.x) {
    float sum = x[(size_t)r * 64 + threadIdx.x];
    for (int d = 16; d > 0; d >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, d);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) out[r] = of_warp[0] + of_warp[1];
    __syncthreads();
  }
}

extern "C" void launch(const float* x, float* out, int rows) {
  Sum<<<rows < 264 ? rows : 264, 64>>>(x, out, rows);
}
