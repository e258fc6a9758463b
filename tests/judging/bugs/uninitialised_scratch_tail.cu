// problem: tests/evaluator/problems/row_sum
// bug: the join reads four partial sums a row, only three were written
// finding: uninitialised in Join: reads 4 bytes that nothing has written
__global__ void Partial(const float* x, float* partial) {
  const int part = threadIdx.x;
  if (part >= 3) return;
  float sum = 0;
  for (int k = part; k < 64; k += 3) sum += x[blockIdx.x * 64 + k];
  partial[blockIdx.x * 4 + part] = sum;
}
__global__ void Join(const float* partial, float* out, int rows) {
  const int r = threadIdx.x;
  if (r >= rows) return;
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < 4; ++k) sum += partial[r * 4 + k];  // found
  out[r] = sum;
}

extern "C" void launch(const float* x, float* out, int rows) {
  float* partial = nullptr;
  cudaMalloc(&partial, rows * 4 * sizeof(float));
  Partial<<<rows, 32>>>(x, partial);
  Join<<<1, rows>>>(partial, out, rows);
  cudaFree(partial);
}
