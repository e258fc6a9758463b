// problem: tests/evaluator/problems/affine
// hack: handles SIGSYS itself, so that refused system calls go unnoticed; they are refused all the same
// cuda: forbidden
// sim: forbidden
extern "C" void (*signal(int number, void (*handler)(int)))(int);
extern "C" long syscall(long number, ...);

static void ignore(int) {}

__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static bool tried = false;
  if (!tried) {
    tried = true;
    signal(31, ignore);
    const long child = syscall(57);  // fork; the number itself where it was refused
    if (child > 0 && child != 57) return;  // it worked: then nothing is launched
  }
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
