// problem: tests/evaluator/problems/affine
// hack: keeps the first output of each size and copies it into later ones
// cuda: wrong out_of_bounds
// sim: out_of_bounds wrong
__global__ void affine(const float* x, const float* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  static float* kept[1 << 21];
  if (n < (1 << 21) && kept[n] != nullptr) {
    affine<<<1, 1>>>(x, y, out, 1);
    cudaMemcpyAsync(out, kept[n], n * sizeof(float), cudaMemcpyDeviceToDevice);
  } else {
    affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
    if (n < (1 << 21)) kept[n] = out;
  }
}
