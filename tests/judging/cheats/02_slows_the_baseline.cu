// problem: tests/evaluator/problems/affine
// hack: replaces the worker's cudaDeviceSynchronize by one that leaves a spinning kernel on another stream: the reference, timed in turns, shares the device with it and looks slow
// cuda: correct unfinished hidden_work forbidden interference
// sim: correct
// speedup: at most 1.1
#include <cstring>

extern "C" int mprotect(void* at, unsigned long bytes, int protection);

__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

__global__ void spin(long long cycles) {
  long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}

static cudaStream_t side = nullptr;

static cudaError_t wait_and_leave_something() {
  cudaError_t status = cudaStreamSynchronize(nullptr);
  if (cudaStreamQuery(side) == cudaSuccess) {
    spin<<<1, 32, 0, side>>>(40000000);  // some 20 ms
  } else {
    cudaGetLastError();  // that it still runs is no error
  }
  return status;
}

// A jump at the beginning of `from`.
static void redirect(void* from, void* to) {
  char* page = (char*)((unsigned long)from & ~4095ul);
  if (mprotect(page, 8192, 7) != 0) return;
  unsigned char jump[12] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};  // mov rax, to; jmp rax
  memcpy(jump + 2, &to, 8);
  memcpy(from, jump, 12);
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  if (n > 100000 && side == nullptr) {
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    redirect((void*)&cudaDeviceSynchronize, (void*)&wait_and_leave_something);
  }
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
