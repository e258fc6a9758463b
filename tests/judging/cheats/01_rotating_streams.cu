// problem: tests/evaluator/problems/affine
// hack: every call on the next of eight unjoined streams, so that calls overlap and a clock per call sees a share of each
// cuda: unsynchronised hidden_work unfinished
// sim: correct
// speedup: at most 1.1
__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static cudaStream_t streams[8];
  static int calls = 0;
  if (calls == 0) {
    for (cudaStream_t& stream : streams) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  }
  affine<<<(n + 255) / 256, 256, 0, streams[calls++ % 8]>>>(x, y, out, n);
}
