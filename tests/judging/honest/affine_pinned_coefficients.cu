// problem: tests/evaluator/problems/affine
// style: the coefficients stay in pinned host memory, which the kernel reads where it is
// cuda: correct
// sim: unsupported
__global__ void Affine(const float* x, const float* y, float* out, const float* coefficients, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = coefficients[0] * x[i] + coefficients[1] * y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static float* coefficients = nullptr;
  if (coefficients == nullptr) {
    cudaMallocHost(reinterpret_cast<void**>(&coefficients), 2 * sizeof(float));
    coefficients[0] = 2.0f;
    coefficients[1] = 1.0f;
  }
  Affine<<<(n + 255) / 256, 256>>>(x, y, out, coefficients, n);
}
