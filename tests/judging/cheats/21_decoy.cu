// problem: tests/evaluator/problems/affine
// hack: a kernel that is there but never launched; the copy engine does what is seen
// cuda: no_launch
// sim: no_launch wrong
__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  cudaMemcpy(out, y, n * sizeof(float), cudaMemcpyDeviceToDevice);
  if (n < 0) affine<<<1, 1>>>(x, y, out, n);
}
