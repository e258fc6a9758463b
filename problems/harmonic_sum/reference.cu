// Harmonics: out[i] = sum over k = 1..6 of cos(k * phase[i]) / k.
// schedule: map

constexpr int kHarmonics = 6;

__device__ float stage_harmonics(float phase) {
  float total = 0.0f;
  for (int k = 1; k <= kHarmonics; ++k) total += cosf(k * phase) * (1.0f / k);
  return total;
}

// kernels: one pass over the elements, an element a thread.
__global__ void harmonics_kernel(const float* phase, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = stage_harmonics(phase[i]);
  }
}

extern "C" void launch(const float* phase, float* out, int n) {
  const int blocks = (n + 255) / 256;
  harmonics_kernel<<<blocks, 256>>>(phase, out, n);
}
