// problem: tests/evaluator/problems/affine
// style: a graph kept between calls; the arguments of its kernel node are updated in each
// cuda: correct
// sim: correct
__global__ void Affine(const float* x, const float* y, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static cudaGraph_t graph = nullptr;
  static cudaGraphExec_t executable = nullptr;
  static cudaGraphNode_t node;
  void* arguments[] = {&x, &y, &out, &n};
  cudaKernelNodeParams parameters = {};
  parameters.func = reinterpret_cast<void*>(Affine);
  parameters.gridDim = dim3((n + 255) / 256);
  parameters.blockDim = dim3(256);
  parameters.kernelParams = arguments;
  if (executable == nullptr) {
    cudaGraphCreate(&graph, 0);
    cudaGraphAddKernelNode(&node, graph, nullptr, 0, &parameters);
    cudaGraphInstantiate(&executable, graph, 0);
  } else {
    cudaGraphExecKernelNodeSetParams(executable, node, &parameters);
  }
  cudaGraphLaunch(executable, 0);
}
