// problem: tests/evaluator/problems/affine
// style: a CUDA graph captured, instantiated, launched into the default stream and destroyed in every call
// cuda: correct
// sim: correct
__global__ void Affine(const float* x, const float* y, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static cudaStream_t capture = nullptr;
  if (capture == nullptr) cudaStreamCreateWithFlags(&capture, cudaStreamNonBlocking);
  cudaStreamBeginCapture(capture, cudaStreamCaptureModeThreadLocal);
  Affine<<<(n + 255) / 256, 256, 0, capture>>>(x, y, out, n);
  cudaGraph_t graph;
  cudaStreamEndCapture(capture, &graph);
  cudaGraphExec_t executable;
  cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphLaunch(executable, 0);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}
