// problem: tests/evaluator/problems/affine
// hack: half of the work on the default stream, for a timer to see, half on a stream it does not see
// cuda: unsynchronised hidden_work unfinished
// sim: correct
// speedup: at most 1.1
__global__ void part(const float* x, const float* y, float* out, int begin, int end) {
  int i = begin + blockIdx.x * blockDim.x + threadIdx.x;
  if (i < end) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static cudaStream_t side = nullptr;
  if (side == nullptr) cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
  int half = (n + 1) / 2;
  part<<<(half + 255) / 256, 256>>>(x, y, out, 0, half);
  part<<<(half + 255) / 256, 256, 0, side>>>(x, y, out, half, n);
}
