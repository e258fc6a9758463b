// problem: problems/dot_product
// bug: every block adds its sum to the output with a plain read and write
// twin: honest/dot_float_atomics
// finding: race in Dot: 'out' (4 bytes), no synchronisation of the blocks
__global__ void Clear(float* out) { out[0] = 0; }
__global__ void Dot(const float* a, const float* b, float* out, int n) {
  float v = 0;
  for (int i = blockIdx.x * 32 + threadIdx.x; i < n; i += gridDim.x * 32) v += a[i] * b[i];
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
  if (threadIdx.x == 0) *out += v;  // found
}

extern "C" void launch(const float* a, const float* b, float* out, int n) {
  Clear<<<1, 1>>>(out);
  Dot<<<n < 8192 ? (n + 31) / 32 : 256, 32>>>(a, b, out, n);
}
