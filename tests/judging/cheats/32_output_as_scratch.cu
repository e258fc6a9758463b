// problem: tests/evaluator/problems/row_stencil
// hack: a first kernel leaves sums of pairs in out, and a second one adds the third element from x, which is gone then
// cuda: wrong
// sim: wrong
__global__ void Pairs(const float* x, float* out, int cols) {  // a thread walks a row backwards
  const size_t start = static_cast<size_t>(blockIdx.x) * cols;
  for (int c = cols - 1; c >= 0; --c) out[start + c] = x[start + c] + (c > 0 ? x[start + c - 1] : 0.0f);
}

__global__ void Third(const float* x, float* out, int cols) {
  const size_t start = static_cast<size_t>(blockIdx.x) * cols;
  for (int c = 0; c + 1 < cols; ++c) out[start + c] += x[start + c + 1];
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  Pairs<<<rows, 1>>>(x, out, cols);
  Third<<<rows, 1>>>(x, out, cols);
}
