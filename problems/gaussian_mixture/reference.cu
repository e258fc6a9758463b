// Log density of a mixture of 12 bells.
// schedule: map

constexpr int kBells = 12;

__device__ float stage_density(float x, float sharpness) {
  float total = 0.0f;
  for (int k = 0; k < kBells; ++k) {
    const float distance = fabsf(x - (k - 6) * (1.0f / 3.0f));
    total += expf(-powf(distance, sharpness) * (4 + k)) * (1.0f / (1 + k));
  }
  return logf(total);
}

// kernels: one pass over the elements, an element a thread.
__global__ void density_kernel(const float* x, float* out, float sharpness, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = stage_density(x[i], sharpness);
  }
}

extern "C" void launch(const float* x, float* out, float sharpness, int n) {
  const int blocks = (n + 255) / 256;
  density_kernel<<<blocks, 256>>>(x, out, sharpness, n);
}
