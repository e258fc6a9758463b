// problem: tests/evaluator/problems/affine
// hack: allocates device memory through the driver, which the problem does not allow and the runtime's counters do not see
// cuda: forbidden
// sim: forbidden
extern "C" void* dlopen(const char* file, int how);
extern "C" void* dlsym(void* library, const char* name);

__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static unsigned long long scratch = 0;
  if (scratch == 0) {
    void* driver = dlopen("libcuda.so.1", 2);
    using Allocate = int (*)(unsigned long long*, unsigned long);
    Allocate allocate = driver != nullptr ? (Allocate)dlsym(driver, "cuMemAlloc_v2") : nullptr;
    if (allocate == nullptr || allocate(&scratch, 64 << 20) != 0) scratch = 1;
  }
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
