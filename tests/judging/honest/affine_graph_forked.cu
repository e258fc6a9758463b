// problem: tests/evaluator/problems/affine
// style: a graph captured from two streams, forked and joined by events, with a memset and a copy; executed again after an update
// cuda: correct
// sim: correct
__global__ void Double(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] += 2.0f * x[i];
}
__global__ void Add(const float* y, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] += y[i];
}

struct Streams {
  cudaStream_t first, second;
  cudaEvent_t fork, join;
  Streams() {
    cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&join, cudaEventDisableTiming);
  }
};

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static Streams streams;
  static cudaGraphExec_t executable = nullptr;
  const int blocks = (n + 255) / 256, half = n / 2;
  cudaStreamBeginCapture(streams.first, cudaStreamCaptureModeGlobal);
  cudaMemsetAsync(out, 0, sizeof(float) * half, streams.first);
  cudaEventRecord(streams.fork, streams.first);
  cudaStreamWaitEvent(streams.second, streams.fork, 0);
  cudaMemcpyAsync(out + half, y + half, sizeof(float) * (n - half), cudaMemcpyDeviceToDevice, streams.second);
  if (half > 0) Add<<<blocks, 256, 0, streams.first>>>(y, out, half);
  cudaEventRecord(streams.join, streams.second);
  cudaStreamWaitEvent(streams.first, streams.join, 0);
  Double<<<blocks, 256, 0, streams.first>>>(x, out, n);
  cudaStreamCaptureStatus status;
  if (cudaStreamIsCapturing(streams.second, &status) != cudaSuccess || status != cudaStreamCaptureStatusActive) return;
  cudaGraph_t graph;
  if (cudaStreamEndCapture(streams.first, &graph) != cudaSuccess) return;
  cudaGraphExecUpdateResultInfo result;
  if (executable == nullptr || cudaGraphExecUpdate(executable, graph, &result) != cudaSuccess) {
    cudaGetLastError();
    if (executable != nullptr) cudaGraphExecDestroy(executable);
    cudaGraphInstantiate(&executable, graph, 0);
  }
  cudaGraphDestroy(graph);
  cudaGraphLaunch(executable, 0);
}
