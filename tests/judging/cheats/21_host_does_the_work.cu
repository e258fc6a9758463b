// problem: tests/evaluator/problems/affine
// hack: an empty kernel is launched; the host copies the inputs, computes and copies back, which is slow
// cuda: correct
// sim: correct
// speedup: at most 1.1
#include <vector>

__global__ void nothing() {}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  std::vector<float> a(n), b(n);
  cudaMemcpy(a.data(), x, n * sizeof(float), cudaMemcpyDeviceToHost);
  cudaMemcpy(b.data(), y, n * sizeof(float), cudaMemcpyDeviceToHost);
  nothing<<<1, 1>>>();
  for (int i = 0; i < n; ++i) a[i] = 2.0f * a[i] + b[i];
  cudaMemcpy(out, a.data(), n * sizeof(float), cudaMemcpyHostToDevice);
}
