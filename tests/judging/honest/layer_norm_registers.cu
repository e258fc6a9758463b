// problem: problems/layer_norm
// style: the row in registers as float4 where columns allow it, persistent blocks, else a scalar kernel
// cuda: correct
// sim: correct
#include <algorithm>
#include <cstdint>

constexpr int kThreads = 256, kVectors = 8;  // a row of at most 8192 elements

__device__ float BlockSum(float value, float* scratch) {
  for (int mask = 16; mask > 0; mask >>= 1) value += __shfl_xor_sync(0xffffffffu, value, mask);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = value;
  __syncthreads();
  float total = 0.0f;
#pragma unroll
  for (int w = 0; w < kThreads / 32; ++w) total += scratch[w];
  return total;
}

__global__ __launch_bounds__(kThreads) void Vectors(const float4* __restrict__ x, const float4* __restrict__ gamma,
                                                    const float4* __restrict__ beta, float4* __restrict__ out, int rows,
                                                    int vectors, float epsilon) {
  __shared__ float scratch[kThreads / 32];
  const float inverse = 1.0f / (4 * vectors);
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    float4 kept[kVectors];
    float sum = 0.0f;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const int i = v * kThreads + threadIdx.x;
      if (i < vectors) {
        kept[v] = x[static_cast<size_t>(row) * vectors + i];
        sum += kept[v].x + kept[v].y + kept[v].z + kept[v].w;
      }
    }
    const float mean = BlockSum(sum, scratch) * inverse;
    float squares = 0.0f;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      if (v * kThreads + threadIdx.x < vectors) {
        kept[v].x -= mean;
        kept[v].y -= mean;
        kept[v].z -= mean;
        kept[v].w -= mean;
        squares += kept[v].x * kept[v].x + kept[v].y * kept[v].y + kept[v].z * kept[v].z + kept[v].w * kept[v].w;
      }
    }
    const float scale = rsqrtf(BlockSum(squares, scratch) * inverse + epsilon);
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const int i = v * kThreads + threadIdx.x;
      if (i < vectors) {
        const float4 g = gamma[i], b = beta[i];
        out[static_cast<size_t>(row) * vectors + i] =
            make_float4(kept[v].x * scale * g.x + b.x, kept[v].y * scale * g.y + b.y, kept[v].z * scale * g.z + b.z,
                        kept[v].w * scale * g.w + b.w);
      }
    }
  }
}

__global__ void Scalars(const float* x, const float* gamma, const float* beta, float* out, int cols, float epsilon) {
  __shared__ float scratch[kThreads / 32];
  const size_t first = static_cast<size_t>(blockIdx.x) * cols;
  float sum = 0.0f, squares = 0.0f;
  for (int c = threadIdx.x; c < cols; c += kThreads) sum += x[first + c];
  const float mean = BlockSum(sum, scratch) / cols;
  for (int c = threadIdx.x; c < cols; c += kThreads) squares += (x[first + c] - mean) * (x[first + c] - mean);
  const float scale = rsqrtf(BlockSum(squares, scratch) / cols + epsilon);
  for (int c = threadIdx.x; c < cols; c += kThreads)
    out[first + c] = (x[first + c] - mean) * scale * gamma[c] + beta[c];
}

extern "C" void launch(const float* x, const float* gamma, const float* beta, float* out, int rows, int cols,
                       float epsilon) {
  const auto aligned = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; };
  if (cols % 4 == 0 && cols <= 4 * kVectors * kThreads && aligned(x) && aligned(gamma) && aligned(beta) &&
      aligned(out)) {
    Vectors<<<std::min(rows, 264), kThreads>>>(
        reinterpret_cast<const float4*>(x), reinterpret_cast<const float4*>(gamma),
        reinterpret_cast<const float4*>(beta), reinterpret_cast<float4*>(out), rows, cols / 4, epsilon);
  } else {
    Scalars<<<rows, kThreads>>>(x, gamma, beta, out, cols, epsilon);
  }
}
