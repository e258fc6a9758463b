// problem: tests/evaluator/problems/row_sum
// bug: the partial sums are freed before the kernel that reads them is launched
// finding: out_of_bounds in Join: reads 4 bytes out of bounds, freed
__global__ void Partial(const float* x, float* partial, int rows) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows * 2) return;
  float sum = 0;
  for (int k = 0; k < 32; ++k) sum += x[i * 32 + k];
  partial[i] = sum;
}
__global__ void Join(const float* partial, float* out, int rows) {
  const int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows) out[r] = partial[2 * r] + partial[2 * r + 1];  // found
}

extern "C" void launch(const float* x, float* out, int rows) {
  float* partial = nullptr;
  cudaMalloc(&partial, 2 * rows * sizeof(float));
  Partial<<<(2 * rows + 127) / 128, 128>>>(x, partial, rows);
  cudaFree(partial);
  Join<<<(rows + 127) / 128, 128>>>(partial, out, rows);
}
