// problem: tests/evaluator/problems/affine
// style: halves on two non-blocking streams, forked from and joined to the default stream by events
// cuda: correct
// sim: correct
__global__ void Affine(const float* x, const float* y, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

namespace {
struct Streams {
  cudaStream_t stream[2];
  cudaEvent_t fork, join[2];
  Streams() {
    cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
    for (int s = 0; s < 2; ++s) {
      cudaStreamCreateWithFlags(&stream[s], cudaStreamNonBlocking);
      cudaEventCreateWithFlags(&join[s], cudaEventDisableTiming);
    }
  }
};
}  // namespace

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static Streams streams;
  const int half = n / 2;
  cudaEventRecord(streams.fork, 0);
  for (int s = 0; s < 2; ++s) {
    const int first = s == 0 ? 0 : half;
    const int count = s == 0 ? half : n - half;
    cudaStreamWaitEvent(streams.stream[s], streams.fork, 0);
    if (count > 0) {
      Affine<<<(count + 255) / 256, 256, 0, streams.stream[s]>>>(x + first, y + first, out + first, count);
    }
    cudaEventRecord(streams.join[s], streams.stream[s]);
    cudaStreamWaitEvent(0, streams.join[s], 0);
  }
}
