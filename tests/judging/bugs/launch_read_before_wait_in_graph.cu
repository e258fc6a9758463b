// problem: tests/evaluator/problems/affine
// bug: in a captured graph the second kernel may begin before the first one has ended, and reads out without a wait
// twin: honest/affine_graph_early_kernel
// finding: race in Add: before it waits for kernel 'Double'
__global__ void Double(const float* x, float* out, int n) {
  cudaTriggerProgrammaticLaunchCompletion();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i];  // found
}

__global__ void Add(const float* y, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] += y[i];  // found
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  const int blocks = (n + 255) / 256;
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(256);
  config.stream = stream;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  Double<<<blocks, 256, 0, stream>>>(x, out, n);
  cudaLaunchKernelEx(&config, Add, y, out, n);
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphLaunch(executable, stream);
  cudaStreamSynchronize(stream);
}
