// problem: tests/evaluator/problems/affine
// hack: joined streams at small sizes, an unjoined one at the timing size; the clock runs until the whole device is idle, so nothing is gained
// cuda: hidden_work unfinished correct
// sim: correct
// speedup: at most 1.1
__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static cudaStream_t side = nullptr;
  if (side == nullptr) cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
  affine<<<(n + 255) / 256, 256, 0, n > 100000 ? side : cudaStream_t(0)>>>(x, y, out, n);
}
