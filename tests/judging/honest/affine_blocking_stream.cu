// problem: tests/evaluator/problems/affine
// style: an ordinary (blocking) stream beside the default stream, ordered by the default stream's own rules
// cuda: correct
// sim: correct
__global__ void Affine(const float* x, const float* y, float* out, int first, int n) {
  const int i = first + blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

__global__ void Mark() {}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static cudaStream_t stream = nullptr;
  if (stream == nullptr) cudaStreamCreate(&stream);
  const int half = (n + 1) / 2;
  Affine<<<(half + 127) / 128, 128, 0, stream>>>(x, y, out, 0, half);
  // Work on the default stream waits for every blocking stream, and later work of theirs for it.
  if (n > half) {
    Affine<<<(n - half + 127) / 128, 128>>>(x, y, out, half, n);
  } else {
    Mark<<<1, 1>>>();
  }
}
