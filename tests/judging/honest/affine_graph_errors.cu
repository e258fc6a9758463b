// problem: tests/evaluator/problems/affine
// style: what a capture forbids is tried first and must fail as CUDA says, or nothing is launched
// cuda: correct
// sim: correct
__global__ void Affine(const float* x, const float* y, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static cudaStream_t stream = nullptr, other = nullptr;
  static cudaEvent_t event = nullptr;
  if (stream == nullptr) {
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  }
  cudaGraph_t graph = nullptr;
  bool as_said = cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeThreadLocal) == cudaErrorStreamCaptureUnsupported;
  // To wait for a stream whose work is only written down.
  as_said &= cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess;
  as_said &= cudaStreamSynchronize(stream) == cudaErrorStreamCaptureUnsupported;
  as_said &= cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated && graph == nullptr;
  // Work of another stream that nothing joins.
  as_said &= cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess;
  cudaEventRecord(event, stream);
  cudaStreamWaitEvent(other, event, 0);
  Affine<<<1, 32, 0, other>>>(x, y, out, 0);
  as_said &= cudaEventQuery(event) == cudaErrorCapturedEvent;
  as_said &= cudaStreamEndCapture(stream, &graph) != cudaSuccess && graph == nullptr;
  cudaGetLastError();
  if (as_said) Affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
