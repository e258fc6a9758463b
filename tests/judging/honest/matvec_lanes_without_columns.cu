// problem: problems/matvec
// style: lanes beyond the columns leave variables unset that only the others use: sums, the last product, a flag
// cuda: correct
// sim: correct
__global__ void MatVec(const float* x, const float* v, float* out, int rows, int cols) {
  __shared__ float sums[32];
  const int r = blockIdx.x, lane = threadIdx.x;
  const bool works = lane < cols;
  float sum, last;
  int steps;
  if (works) {
    sum = 0;
    steps = 0;
    for (int c = lane; c < cols; c += 32, ++steps) {
      last = x[static_cast<size_t>(r) * cols + c] * v[c];
      sum += last;
    }
  }
  sums[lane] = sum;  // of lanes that have none nobody reads it
  __syncwarp();
  const float next = __shfl_down_sync(~0u, sum, 16);  // nor this
  if (works && lane < 16) {
    float total = lane + 16 < min(cols, 32) ? sum + next : sum;
    sums[lane] = steps > 0 ? total : last;
  }
  __syncwarp();
  if (lane == 0) {
    float total = 0;
    for (int l = 0; l < min(cols, 16); ++l) total += sums[l];
    out[r] = total;
  }
}

extern "C" void launch(const float* x, const float* v, float* out, int rows, int cols) {
  MatVec<<<rows, 32>>>(x, v, out, rows, cols);
}
