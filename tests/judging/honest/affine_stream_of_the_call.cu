// problem: tests/evaluator/problems/affine
// style: a non-blocking stream and events made, joined and destroyed in every call
// cuda: correct
// sim: correct
__global__ void Affine(const float* x, const float* y, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  cudaStream_t side;
  cudaEvent_t begin, end;
  cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&begin, cudaEventDisableTiming);
  cudaEventCreateWithFlags(&end, cudaEventDisableTiming);
  cudaEventRecord(begin);
  cudaStreamWaitEvent(side, begin);
  Affine<<<(n + 255) / 256, 256, 0, side>>>(x, y, out, n);
  cudaEventRecord(end, side);
  cudaStreamWaitEvent(cudaStreamLegacy, end);
  // Resources of pending work are released once that work is done.
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaStreamDestroy(side);
}
