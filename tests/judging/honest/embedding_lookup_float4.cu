// problem: problems/embedding_lookup
// style: float4 rows where the width allows it, a template of the vector type, blocks of (lanes, rows)
// cuda: correct
// sim: correct
#include <cstdint>

__device__ float Scale(float v, float s) { return v * s; }
__device__ float2 Scale(float2 v, float s) { return make_float2(v.x * s, v.y * s); }
__device__ float4 Scale(float4 v, float s) { return make_float4(v.x * s, v.y * s, v.z * s, v.w * s); }

template <typename Vector>
__global__ void Lookup(const Vector* __restrict__ table, const int* __restrict__ index, Vector* __restrict__ out, int n,
                       int width, float scale) {
  const int i = blockIdx.x * blockDim.y + threadIdx.y;
  if (i >= n) return;
  const size_t from = static_cast<size_t>(__ldg(index + i)) * width, to = static_cast<size_t>(i) * width;
  for (int d = threadIdx.x; d < width; d += blockDim.x) out[to + d] = Scale(__ldg(table + from + d), scale);
}

template <typename Vector>
static bool Run(const float* table, const int* index, float* out, int n, int width, float scale) {
  constexpr int kElements = sizeof(Vector) / sizeof(float);
  const auto bits = reinterpret_cast<std::uintptr_t>(table) | reinterpret_cast<std::uintptr_t>(out);
  if (width % kElements != 0 || bits % sizeof(Vector) != 0) return false;
  Lookup<Vector><<<(n + 3) / 4, dim3(32, 4)>>>(reinterpret_cast<const Vector*>(table), index,
                                              reinterpret_cast<Vector*>(out), n, width / kElements, scale);
  return true;
}

extern "C" void launch(const float* table, const int* index, float* out, int n, int width, float scale) {
  Run<float4>(table, index, out, n, width, scale) || Run<float2>(table, index, out, n, width, scale) ||
      Run<float>(table, index, out, n, width, scale);
}
