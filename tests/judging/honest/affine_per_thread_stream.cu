// problem: tests/evaluator/problems/affine
// style: cudaStreamPerThread, which waits for the legacy default stream and is waited for by it
// cuda: correct
// sim: correct
__global__ void Twice(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i];
}

__global__ void AddTo(const float* y, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] += y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static cudaEvent_t done = [] {
    cudaEvent_t event;
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    return event;
  }();
  const int blocks = (n + 255) / 256;
  Twice<<<blocks, 256, 0, cudaStreamPerThread>>>(x, out, n);
  cudaEventRecord(done, cudaStreamPerThread);
  cudaStreamWaitEvent(cudaStreamLegacy, done, 0);
  AddTo<<<blocks, 256>>>(y, out, n);
}
