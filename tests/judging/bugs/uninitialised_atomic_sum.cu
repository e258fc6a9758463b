// problem: problems/dot_product
// bug: blocks add their sums to the output, which nobody has set to zero
// finding: uninitialised in Dot: reads 4 bytes that nothing has written, 'out' (4 bytes)
__global__ void Dot(const float* a, const float* b, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = i < n ? a[i] * b[i] : 0.0f;
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
  if ((threadIdx.x & 31) == 0) atomicAdd(out, v);  // found
}

extern "C" void launch(const float* a, const float* b, float* out, int n) {
  Dot<<<(n + 255) / 256, 256>>>(a, b, out, n);
}
