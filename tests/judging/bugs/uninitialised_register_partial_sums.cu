// problem: problems/matvec
// bug: the lanes of a warp join their sums by shuffles, but a lane beyond the columns has none
// finding: uninitialised in MatVec: stores a value that comes from a variable that was never set, of 'out'
__global__ void MatVec(const float* x, const float* v, float* out, int rows, int cols) {
  const int r = blockIdx.x, lane = threadIdx.x;
  float sum;
  if (lane < cols) {
    sum = 0;
    for (int c = lane; c < cols; c += 32) sum += x[static_cast<size_t>(r) * cols + c] * v[c];
  }
  for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(~0u, sum, d);  // found
  if (lane == 0) out[r] = sum;  // found
}

extern "C" void launch(const float* x, const float* v, float* out, int rows, int cols) {
  MatVec<<<rows, 32>>>(x, v, out, rows, cols);
}
