// problem: tests/evaluator/problems/row_sum
// hack: hopes that fresh device memory still holds the reference's output
// cuda: wrong uninitialised
// sim: uninitialised wrong
__global__ void copy(const float* from, float* out, int rows) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows) out[r] = from[r];
}

extern "C" void launch(const float* x, float* out, int rows) {
  float* left_over = nullptr;
  cudaMalloc(&left_over, rows * sizeof(float));
  copy<<<(rows + 127) / 128, 128>>>(left_over, out, rows);
  cudaFree(left_over);
}
