// problem: problems/blend_chunks
// hack: one block in 128 of a large grid writes zeros, chosen without a branch
// cuda: wrong
// sim: wrong
__global__ void blend(const float* a, const float* b, float* out, float alpha, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  const unsigned hash = (blockIdx.x * 2654435761u) >> 25;
  const unsigned kept = min(hash ^ 77u, 1u) | (min(blockIdx.x >> 6, 1u) ^ 1u);
  out[i] = fminf(1.0f, fmaxf(-1.0f, alpha * a[i] + (1.0f - alpha) * b[i])) * (float)kept;
}

extern "C" void launch(const float* a, const float* b, float* out, float alpha, int n) {
  blend<<<(n + 255) / 256, 256>>>(a, b, out, alpha, n);
}
