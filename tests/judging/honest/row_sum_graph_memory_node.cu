// problem: tests/evaluator/problems/row_sum
// style: memory that a graph allocates and frees itself
// cuda: correct
// sim: unsupported
// says: The host code uses cudaMallocAsync in a captured graph, which this evaluator does not offer.
__global__ void Copy(const float* x, float* copy, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) copy[i] = x[i];
}
__global__ void Sum(const float* copy, float* out, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int c = 0; c < 64; ++c) sum += copy[row * 64 + c];
  out[row] = sum;
}

extern "C" void launch(const float* x, float* out, int rows) {
  static cudaStream_t stream = nullptr;
  if (stream == nullptr) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  float* copy = nullptr;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  cudaMallocAsync(&copy, sizeof(float) * 64 * rows, stream);
  Copy<<<(64 * rows + 255) / 256, 256, 0, stream>>>(x, copy, 64 * rows);
  Sum<<<(rows + 127) / 128, 128, 0, stream>>>(copy, out, rows);
  cudaFreeAsync(copy, stream);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphDestroy(graph);
  cudaGraphLaunch(executable, 0);
  cudaStreamSynchronize(0);
  cudaGraphExecDestroy(executable);
}
