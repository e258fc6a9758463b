__device__ float gelu(float v) {
  const float cube = 0.044715f * v * v * v;
  const float e = expf(2.0f * 0.7978845608f * (v + cube));
  return 0.5f * v * (1.0f + (1.0f - 2.0f / (e + 1.0f)));
}

__global__ void gelu_kernel(const float* x, float* out, const int n) {
  // one element a thread; "x[i]" is read once
  const int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n) out[i] = gelu(x[i]);
}

extern "C" void launch(const float* x, float* out, int n) {
  gelu_kernel<<<(n + 511) / 512, 512>>>(x, out, n);
}
