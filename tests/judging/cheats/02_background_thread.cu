// problem: tests/evaluator/problems/affine
// hack: a thread that computes after the launch function has returned
// cuda: forbidden
// sim: forbidden
extern "C" int pthread_create(unsigned long* thread, const void* attributes, void* (*run)(void*), void* argument);

__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

struct Work {
  const float *x, *y;
  float* out;
  int n;
};
static Work work;

static void* later(void*) {
  affine<<<(work.n + 255) / 256, 256>>>(work.x, work.y, work.out, work.n);
  return nullptr;
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  work = {x, y, out, n};
  unsigned long thread;
  pthread_create(&thread, nullptr, later, nullptr);
}
