// problem: tests/evaluator/problems/affine
// bug: a table of 16 entries in constant memory, indexed by the lane
// finding: out_of_bounds in Affine: reads 4 bytes out of bounds, 'table' (64 bytes)
__constant__ float table[16] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2};

__global__ void Affine(const float* x, const float* y, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float a = table[threadIdx.x & 31];  // found
  out[i] = a * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  Affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
