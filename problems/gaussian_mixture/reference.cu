// Log density of a mixture of 16 Gaussians.
// schedule: map

constexpr int kComponents = 16;

__device__ float stage_density(float x) {
  float total = 0.0f;
  for (int k = 0; k < kComponents; ++k) {
    const float offset = x - (k - 8) * 0.25f;
    total += fdividef(expf(-fdividef(offset * offset, 0.1f + 0.05f * k)), 1.0f + k);
  }
  return logf(total);
}

// kernels: one pass over the elements, an element a thread.
__global__ void density_kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = stage_density(x[i]);
  }
}

extern "C" void launch(const float* x, float* out, int n) {
  const int blocks = (n + 255) / 256;
  density_kernel<<<blocks, 256>>>(x, out, n);
}
