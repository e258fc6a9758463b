// problem: tests/evaluator/problems/affine
// hack: a block works for all others when the clock says so; on another clock than a GPU's that is another one
// cuda: correct
// sim: not_timed
__global__ void affine(const float* x, const float* y, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int times = clock64() % 97 == 0 ? 64 : 1;
  for (int k = 0; k < times; ++k)
    if (i < n) ((volatile float*)out)[i] = 2.0f * x[i] + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  affine<<<(n + 255) / 256, 256>>>(x, y, out, n);
}
