// problem: tests/evaluator/problems/affine
// style: float4 by reinterpret_cast where the pointers are aligned, the last elements one by one
// cuda: correct
// sim: correct
#include <cstdint>

__global__ __launch_bounds__(256) void AffineVector(const float* __restrict__ x, const float* __restrict__ y,
                                                    float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int vectors = n / 4;
  if (i < vectors) {
    const float4 a = __ldg(reinterpret_cast<const float4*>(x) + i);
    const float4 b = __ldg(reinterpret_cast<const float4*>(y) + i);
    reinterpret_cast<float4*>(out)[i] =
        make_float4(2.0f * a.x + b.x, 2.0f * a.y + b.y, 2.0f * a.z + b.z, 2.0f * a.w + b.w);
  }
  // The first threads of the grid take what no vector covers.
  const int rest = 4 * vectors + i;
  if (i < 4 && rest < n) out[rest] = 2.0f * x[rest] + y[rest];
}

__global__ void AffineScalar(const float* x, const float* y, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i] + y[i];
}

static bool Aligned(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0; }

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  if (Aligned(x) && Aligned(y) && Aligned(out)) {
    AffineVector<<<(n / 4 + 256) / 256, 256>>>(x, y, out, n);
  } else {
    AffineScalar<<<(n + 255) / 256, 256>>>(x, y, out, n);
  }
}
