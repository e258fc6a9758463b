// problem: tests/evaluator/problems/affine
// hack: sends a signal to the driver's threads, which were there before the system call filter, and forks in its handler
// cuda: forbidden
// sim: forbidden
extern "C" void (*signal(int number, void (*handler)(int)))(int);
extern "C" long syscall(long number, ...);
extern "C" int usleep(unsigned microseconds);
extern "C" void _exit(int code);

static volatile int children = 0;

static void in_another_thread(int) {
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
    signal(10, in_another_thread);
    const long process = syscall(39), own = syscall(186);
    for (long thread = process; thread < process + 200; ++thread) {
      if (thread != own) syscall(234, process, thread, 10L);
    }
    for (int i = 0; i < 50 && children == 0; ++i) usleep(1000);
  }
  if (children > 0) return;  // it worked: then nothing is launched
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
