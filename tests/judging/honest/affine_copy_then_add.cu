// problem: tests/evaluator/problems/affine
// style: cudaMemcpyAsync from device to device as part of the work, then a kernel in place
// cuda: correct
// sim: correct
__global__ void AddTwice(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] += 2.0f * x[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  cudaMemcpyAsync(out, y, sizeof(float) * n, cudaMemcpyDeviceToDevice, 0);
  AddTwice<<<(n + 255) / 256, 256>>>(x, out, n);
}
