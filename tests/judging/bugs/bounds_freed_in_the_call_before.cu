// problem: tests/evaluator/problems/row_sum
// bug: scratch memory is kept between calls, and freed at the end of each
// finding: out_of_bounds in Copy: writes 4 bytes out of bounds, freed
__global__ void Copy(const float* x, float* scratch, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) scratch[i] = x[i];  // found
}
__global__ void Sum(const float* scratch, float* out, int rows) {
  const int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float sum = 0;
  for (int k = 0; k < 64; ++k) sum += scratch[r * 64 + k];
  out[r] = sum;
}

extern "C" void launch(const float* x, float* out, int rows) {
  static float* scratch = nullptr;
  if (scratch == nullptr) cudaMalloc(&scratch, 1 << 20);
  Copy<<<(rows * 64 + 127) / 128, 128>>>(x, scratch, rows * 64);
  Sum<<<(rows + 127) / 128, 128>>>(scratch, out, rows);
  cudaFree(scratch);
}
