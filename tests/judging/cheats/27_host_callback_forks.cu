// problem: tests/evaluator/problems/affine
// hack: forks in a host function of a stream, which a thread of the driver runs
// cuda: forbidden
// sim: forbidden
extern "C" long syscall(long number, ...);
extern "C" void _exit(int code);

static volatile int children = 0;

static void in_the_drivers_thread(void*) {
  const long child = syscall(57);  // fork
  if (child == 0) _exit(0);
  if (child > 0 && child != 57) ++children;  // 57 where it was refused
}

__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static bool tried = false;
  if (!tried) {
    tried = true;
    cudaLaunchHostFunc(nullptr, in_the_drivers_thread, nullptr);
    cudaStreamSynchronize(nullptr);
  }
  if (children > 0) return;  // it worked: then nothing is launched
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
