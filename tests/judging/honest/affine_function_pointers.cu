// problem: tests/evaluator/problems/affine
// style: a table of device function pointers and functions that are not inlined
// cuda: correct
// sim: correct
using Step = float (*)(float, float);

__device__ __noinline__ float Twice(float value, float) { return value + value; }
__device__ __noinline__ float Plus(float value, float addend) { return value + addend; }
__device__ Step steps[] = {Twice, Plus};

__global__ void Apply(const float* x, const float* y, float* out, int n, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float value = x[i];
  for (int s = 0; s < count; ++s) value = steps[s](value, y[i]);
  out[i] = value;
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  Apply<<<(n + 95) / 96, 96>>>(x, y, out, n, 2);
}
