// problem: tests/evaluator/problems/affine
// style: cudaMemcpy2DAsync (rows of 64 elements, then the rest) as part of the work, then a kernel in place
// cuda: correct
// sim: correct
__global__ void AddTwice(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] += 2.0f * x[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  constexpr int kWidth = 64;
  constexpr size_t kPitch = kWidth * sizeof(float);
  const int rows = n / kWidth, rest = n % kWidth;
  if (rows > 0) cudaMemcpy2DAsync(out, kPitch, y, kPitch, kPitch, rows, cudaMemcpyDeviceToDevice, 0);
  if (rest > 0) {
    cudaMemcpyAsync(out + n - rest, y + n - rest, rest * sizeof(float), cudaMemcpyDeviceToDevice, 0);
  }
  AddTwice<<<(n + 255) / 256, 256>>>(x, out, n);
}
