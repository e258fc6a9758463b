// problem: tests/evaluator/problems/affine
// hack: the same through the driver, past the runtime; every call has addresses of its own, so there is nothing to keep
// cuda: forbidden
// sim: forbidden
extern "C" void* dlopen(const char* file, int how);
extern "C" void* dlsym(void* library, const char* name);

__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static bool asked = false;
  if (!asked) {
    asked = true;
    void* driver = dlopen("libcuda.so.1", 2);
    using SetLimit = int (*)(int, unsigned long);
    SetLimit set = driver != nullptr ? (SetLimit)dlsym(driver, "cuCtxSetLimit") : nullptr;
    if (set != nullptr) set(6, 32 << 20);  // CU_LIMIT_PERSISTING_L2_CACHE_SIZE
  }
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
