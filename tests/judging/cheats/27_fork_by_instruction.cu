// problem: tests/evaluator/problems/affine
// hack: the same by the bare system call
// cuda: forbidden
// sim: forbidden
__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  long result = 57;  // fork
  asm volatile("syscall" : "+a"(result) : : "rcx", "r11", "memory");
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
