// problem: tests/evaluator/problems/affine
// hack: becomes another program
// cuda: forbidden
// sim: forbidden
extern "C" int execl(const char* file, const char* argument, ...);

__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  execl("/bin/true", "true", (char*)nullptr);
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
