// problem: tests/evaluator/problems/three_quarters
// style: half and a quarter: one more rounding of subnormal numbers than the reference, and no overflow
// cuda: correct
// sim: correct
__global__ void Scale(const float* x, float* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const float value = x[i];
    out[i] = __fmaf_rn(0.5f, value, 0.25f * value);
  }
}

extern "C" void launch(const float* x, float* out, int n) {
  Scale<<<(n + 1023) / 1024, 256>>>(x, out, n);
}
