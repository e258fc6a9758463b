// problem: tests/evaluator/problems/affine
// hack: captures the work as a graph at the first call of each size and replays it with the old pointers ever after
// cuda: wrong out_of_bounds
// sim: out_of_bounds
#include <map>

__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static std::map<int, cudaGraphExec_t> graphs;
  static cudaStream_t stream = nullptr;
  if (stream == nullptr) cudaStreamCreate(&stream);
  if (graphs.count(n) == 0) {
    cudaGraph_t graph;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    affine<<<(n + 255) / 256, 256, 0, stream>>>(x, y, out, n);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&graphs[n], graph, 0);
  }
  cudaGraphLaunch(graphs[n], nullptr);
}
