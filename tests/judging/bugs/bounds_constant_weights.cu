// problem: tests/evaluator/problems/row_sum
// bug: 60 weights in constant memory for 64 columns
// finding: out_of_bounds in Sum: reads 4 bytes out of bounds, 'weights' (240 bytes)
__constant__ float weights[60];

__global__ void Sum(const float* x, float* out, int rows) {
  const int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < 64; ++k) sum += weights[k] * x[r * 64 + k];  // found
  out[r] = sum;
}

extern "C" void launch(const float* x, float* out, int rows) {
  float ones[60];
  for (float& one : ones) one = 1.0f;
  cudaMemcpyToSymbol(weights, ones, sizeof ones);
  Sum<<<(rows + 31) / 32, 32>>>(x, out, rows);
}
