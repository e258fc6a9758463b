// problem: tests/evaluator/problems/affine
// style: lambdas in device code, handed to a generic for-each
// cuda: correct
// sim: correct
template <typename Body>
__device__ __forceinline__ void ForEach(int n, Body&& body) {
  const int stride = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) body(i);
}

__global__ void Affine(const float* x, const float* y, float* out, int n) {
  const auto affine = [](float a, float b) { return 2.0f * a + b; };
  ForEach(n, [&](int i) { out[i] = affine(x[i], y[i]); });
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  const auto blocks_for = [n](int block) { return min((n + block - 1) / block, 1024); };
  Affine<<<blocks_for(160), 160>>>(x, y, out, n);
}
