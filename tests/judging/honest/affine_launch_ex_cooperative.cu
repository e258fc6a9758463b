// problem: tests/evaluator/problems/affine
// style: cudaLaunchKernelEx with the cooperative attribute on a non-blocking stream of high priority, joined
// cuda: correct
// sim: correct
#include <cooperative_groups.h>

__global__ void Affine(const float* x, const float* y, float* out, int n) {
  const auto grid = cooperative_groups::this_grid();
  for (unsigned long long i = grid.thread_rank(); i < n; i += grid.num_threads()) out[i] = 2.0f * x[i];
  grid.sync();
  // In the opposite order, so that the barrier matters.
  for (unsigned long long i = grid.thread_rank(); i < n; i += grid.num_threads()) out[n - 1 - i] += y[n - 1 - i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static cudaStream_t stream = nullptr;
  static cudaEvent_t event = nullptr;
  if (stream == nullptr) {
    cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -1);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  }
  cudaEventRecord(event, 0);
  cudaStreamWaitEvent(stream, event, 0);
  cudaLaunchAttribute attributes[1] = {};
  attributes[0].id = cudaLaunchAttributeCooperative;
  attributes[0].val.cooperative = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(min((n + 255) / 256, 132));
  config.blockDim = dim3(256);
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, Affine, x, y, out, n);
  cudaEventRecord(event, stream);
  cudaStreamWaitEvent(0, event, 0);
}
