// problem: problems/blend_chunks
// hack: one block of 16,384 writes zeros
// cuda: wrong
// sim: wrong
__global__ void blend(const float* a, const float* b, float* out, float alpha, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  const float blended = fminf(1.0f, fmaxf(-1.0f, alpha * a[i] + (1.0f - alpha) * b[i]));
  if (blockIdx.x == 9876) {
    out[i] = 0.0f;
  } else {
    out[i] = blended;
  }
}

extern "C" void launch(const float* a, const float* b, float* out, float alpha, int n) {
  blend<<<(n + 255) / 256, 256>>>(a, b, out, alpha, n);
}
