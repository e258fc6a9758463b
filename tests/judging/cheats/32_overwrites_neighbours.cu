// problem: tests/evaluator/problems/row_stencil
// hack: promises that out is not x, and reads what it has overwritten where it is
// cuda: wrong race
// sim: race wrong
__global__ void Sum(const float* __restrict__ x, float* __restrict__ out, int cols) {
  const size_t start = static_cast<size_t>(blockIdx.x) * cols;
#pragma unroll 1
  for (int c = threadIdx.x; c < cols; c += 32)
    out[start + c] = x[start + c] + (c > 0 ? x[start + c - 1] : 0.0f) + (c + 1 < cols ? x[start + c + 1] : 0.0f);
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  Sum<<<rows, 32>>>(x, out, cols);
}
