// problem: tests/evaluator/problems/three_quarters
// hack: multiplies as -use_fast_math would, which takes subnormal numbers for zero
// cuda: wrong
// sim: wrong
__global__ void Scale(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float value;
  asm("mul.ftz.f32 %0, %1, 0f3F400000;" : "=f"(value) : "f"(x[i]));
  out[i] = value;
}

extern "C" void launch(const float* x, float* out, int n) {
  Scale<<<(n + 255) / 256, 256>>>(x, out, n);
}
