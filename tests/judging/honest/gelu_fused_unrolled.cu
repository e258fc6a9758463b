// problem: problems/bias_gelu_residual
// style: all stages in one kernel, blocks of 96 threads, four strided elements a thread loaded before any is used
// cuda: correct
// sim: correct
__device__ __forceinline__ float Gelu(float u) {
  const float inner = 1.5957691216f * fmaf(0.044715f * u * u, u, u);
  return u - __fdividef(u, __expf(inner) + 1.0f);
}

template <int kItems>
__global__ void Fused(const float* __restrict__ x, const float* __restrict__ bias, const float* __restrict__ residual,
                      const float* __restrict__ mask, float* __restrict__ out, float gain, int n) {
  const int base = blockIdx.x * blockDim.x * kItems + threadIdx.x;
  float sum[kItems], rest[kItems], keep[kItems];
#pragma unroll
  for (int item = 0; item < kItems; ++item) {
    const int i = base + item * blockDim.x;
    if (i < n) {
      sum[item] = x[i] + bias[i];
      rest[item] = residual[i];
      keep[item] = mask[i];
    }
  }
#pragma unroll
  for (int item = 0; item < kItems; ++item) {
    const int i = base + item * blockDim.x;
    if (i < n) out[i] = fminf(fmaxf(Gelu(gain * sum[item]) + rest[item], -8.0f), 8.0f) * keep[item];
  }
}

extern "C" void launch(const float* x, const float* bias, const float* residual, const float* mask, float* out,
                       float gain, int n) {
  constexpr int kThreads = 96, kItems = 4;
  Fused<kItems><<<(n + kThreads * kItems - 1) / (kThreads * kItems), kThreads>>>(x, bias, residual, mask, out, gain, n);
}
