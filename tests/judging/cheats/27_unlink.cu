// problem: tests/evaluator/problems/affine
// hack: removes files
// cuda: forbidden
// sim: forbidden
extern "C" int unlink(const char* file);

__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  unlink("/tmp/candidate.so");
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
