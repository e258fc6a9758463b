// problem: tests/evaluator/problems/affine
// hack: above 1,000 blocks the grid is a twenty-fifth too small
// cuda: wrong
// sim: wrong
// says: elements of out were never written
__global__ void Affine(const float* x, const float* y, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  const int blocks = (n + 255) / 256;
  Affine<<<blocks > 1000 ? blocks - blocks / 25 : blocks, 256>>>(x, y, out, n);
}
