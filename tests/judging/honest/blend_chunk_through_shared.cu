// problem: problems/blend_chunks
// style: chunks of neighbouring elements a thread, but moved through shared memory so that global accesses are coalesced
// cuda: correct
// sim: correct
constexpr int kThreads = 64, kChunk = 9, kTile = kThreads * kChunk;

__global__ void Blend(const float* a, const float* b, float* out, float alpha, int n) {
  __shared__ float as[kTile], bs[kTile];
  const int first = blockIdx.x * kTile, count = min(kTile, n - first);
  for (int i = threadIdx.x; i < count; i += kThreads) {
    as[i] = a[first + i];
    bs[i] = b[first + i];
  }
  __syncthreads();
#pragma unroll
  for (int j = 0; j < kChunk; ++j) {
    const int i = threadIdx.x * kChunk + j;
    if (i < count) as[i] = fminf(fmaxf(alpha * as[i] + (1.0f - alpha) * bs[i], -1.0f), 1.0f);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < count; i += kThreads) out[first + i] = as[i];
}

extern "C" void launch(const float* a, const float* b, float* out, float alpha, int n) {
  Blend<<<(n + kTile - 1) / kTile, kThreads>>>(a, b, out, alpha, n);
}
