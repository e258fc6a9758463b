// problem: tests/evaluator/problems/affine
// style: host code that checks every call, records events, and waits for the device before it returns
// cuda: correct
// sim: correct
#include <cstdio>
#include <stdexcept>
#include <string>

static void Check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

__global__ void Affine(const float* x, const float* y, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  try {
    int device = -1;
    Check(cudaGetDevice(&device), "device");
    cudaEvent_t done;
    Check(cudaEventCreate(&done), "event");
    Affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
    Check(cudaPeekAtLastError(), "kernel");
    Check(cudaEventRecord(done), "record");
    Check(cudaEventSynchronize(done), "wait");
    Check(cudaEventDestroy(done), "destroy");
    Check(cudaDeviceSynchronize(), "device");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
}
