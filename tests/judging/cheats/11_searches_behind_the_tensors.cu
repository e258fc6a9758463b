// problem: tests/evaluator/problems/affine
// hack: looks for an earlier or expected output in the memory behind its own output
// cuda: wrong out_of_bounds
// sim: out_of_bounds
__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float found = 0.0f;
  for (int step = 1; step < 16 && found == 0.0f; ++step) {
    float value = out[i + step * (n + 1024)];
    if (value == value) found = value;
  }
  out[i] = found;
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
