// problem: tests/evaluator/problems/row_sum
// hack: takes all device memory there is through the driver, so that the baseline beside it cannot run
// cuda: right forbidden out_of_memory
// sim: right
// speedup: at most 1.1
// open: cuda: a candidate may take all device memory; what fails then in the judge or the baseline is thrown as an error of the device or the problem, which ends the run
extern "C" void* dlopen(const char* file, int how);
extern "C" void* dlsym(void* library, const char* name);

__global__ void sum_rows(const float* x, float* out, int rows) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float total = 0;
  for (int i = 0; i < 64; ++i) total += x[r * 64 + i];
  out[r] = total;
}

extern "C" void launch(const float* x, float* out, int rows) {
  static bool taken = false;
  sum_rows<<<(rows + 127) / 128, 128>>>(x, out, rows);
  if (taken) return;
  taken = true;
  void* driver = dlopen("libcuda.so.1", 2);
  using Allocate = int (*)(unsigned long long*, unsigned long);
  Allocate allocate = driver != nullptr ? (Allocate)dlsym(driver, "cuMemAlloc_v2") : nullptr;
  if (allocate == nullptr) return;
  for (unsigned long bytes = 1ul << 30; bytes >= 1ul << 16; bytes /= 2) {
    unsigned long long block;
    while (allocate(&block, bytes) == 0) {
    }
  }
}
