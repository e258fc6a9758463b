// problem: tests/evaluator/problems/affine
// hack: all work on a stream that the default stream does not wait for, so that events around the call see nothing
// cuda: unsynchronised hidden_work unfinished
// sim: correct
// speedup: at most 1.1
__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static cudaStream_t side = nullptr;
  if (side == nullptr) cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
  affine<<<(n + 255) / 256, 256, 0, side>>>(x, y, out, n);
}
