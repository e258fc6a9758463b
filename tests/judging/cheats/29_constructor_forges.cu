// problem: tests/evaluator/problems/affine
// hack: says in a constructor that it has been loaded and that all is done
// cuda: forbidden
// sim: forbidden
extern "C" long write(int file, const void* data, unsigned long bytes);

__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

struct Forger {
  Forger() {
    struct {
      unsigned kind, detail;
      unsigned long long bytes;
    } loaded = {3, 0, 0}, planned = {4, 0, 0};
    for (int i = 0; i < 3; ++i) write(3, &loaded, sizeof loaded), write(3, &planned, sizeof planned);
  }
} forger;

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
