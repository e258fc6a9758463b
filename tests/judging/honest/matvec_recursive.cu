// problem: problems/matvec
// style: a recursive device function over halves of the row (its own stack), eight columns at the leaves
// cuda: correct
// sim: correct
__device__ float Dot(const float* a, const float* b, int count) {
  if (count <= 8) {
    float sum = 0.0f;
    for (int i = 0; i < count; ++i) sum += a[i] * b[i];
    return sum;
  }
  const int half = count / 2;
  return Dot(a, b, half) + Dot(a + half, b + half, count - half);
}

__global__ void MatVec(const float* x, const float* v, float* out, int rows, int cols) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) out[row] = Dot(x + static_cast<size_t>(row) * cols, v, cols);
}

extern "C" void launch(const float* x, const float* v, float* out, int rows, int cols) {
  MatVec<<<(rows + 63) / 64, 64>>>(x, v, out, rows, cols);
}
