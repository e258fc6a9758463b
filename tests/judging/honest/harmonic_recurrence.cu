// problem: problems/harmonic_sum
// style: one cosine and Chebyshev's recurrence, grid-stride with #pragma unroll, __ldcs and __stcs
// cuda: correct
// sim: correct
__global__ void Harmonics(const float* phase, float* out, int n) {
#pragma unroll 2
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const float first = cosf(__ldcs(phase + i));
    float before = 1.0f, now = first, total = first;
#pragma unroll
    for (int k = 2; k <= 6; ++k) {
      const float next = fmaf(2.0f * first, now, -before);
      before = now;
      now = next;
      total = fmaf(now, 1.0f / k, total);
    }
    __stcs(out + i, total);
  }
}

extern "C" void launch(const float* phase, float* out, int n) {
  const int blocks = (n + 511) / 512;
  Harmonics<<<blocks < 2048 ? blocks : 2048, 256>>>(phase, out, n);
}
