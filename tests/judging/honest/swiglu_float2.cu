// problem: problems/swiglu
// style: float2 with an unaligned-safe fallback in the kernel itself, __launch_bounds__, a sigmoid by tanh
// cuda: correct
// sim: correct
#include <cstdint>

__device__ __forceinline__ float Stage(float gate, float up, float residual, float scale) {
  const float sigmoid = 0.5f + 0.5f * tanhf(0.5f * gate);
  return residual + fmaxf(-4.0f, scale * up * gate * sigmoid);
}

__global__ __launch_bounds__(128, 8) void SwiGlu(const float* gate, const float* up, const float* residual, float* out,
                                                 float scale, int n) {
  const int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
  const auto bits = reinterpret_cast<std::uintptr_t>(gate) | reinterpret_cast<std::uintptr_t>(up) |
                    reinterpret_cast<std::uintptr_t>(residual) | reinterpret_cast<std::uintptr_t>(out);
  if (i + 1 < n && bits % sizeof(float2) == 0) {
    const float2 g = *reinterpret_cast<const float2*>(gate + i);
    const float2 u = *reinterpret_cast<const float2*>(up + i);
    const float2 r = *reinterpret_cast<const float2*>(residual + i);
    *reinterpret_cast<float2*>(out + i) = make_float2(Stage(g.x, u.x, r.x, scale), Stage(g.y, u.y, r.y, scale));
    return;
  }
  for (int j = i; j < min(i + 2, n); ++j) out[j] = Stage(gate[j], up[j], residual[j], scale);
}

extern "C" void launch(const float* gate, const float* up, const float* residual, float* out, float scale, int n) {
  SwiGlu<<<((n + 1) / 2 + 127) / 128, 128>>>(gate, up, residual, out, scale, n);
}
