// problem: problems/attention
// style: all keys and values in dynamic shared memory, up to the opt-in limit; persistent blocks; half a warp a query
// cuda: correct
// sim: correct
#include <algorithm>

constexpr int kDim = 16, kThreads = 128;

template <bool kResident>
__global__ void Attention(const float* q, const float* k, const float* v, float* out, int queries, int keys,
                          float scale) {
  extern __shared__ float memory[];
  if (kResident) {
    for (int i = threadIdx.x; i < keys * kDim; i += kThreads) {
      memory[i] = k[i];
      memory[keys * kDim + i] = v[i];
    }
    __syncthreads();
    k = memory;
    v = memory + keys * kDim;
  }
  const int d = threadIdx.x % kDim;
  const unsigned half = 0xffffu << (threadIdx.x & 16);
  const int groups = gridDim.x * (kThreads / kDim);
  for (int query = blockIdx.x * (kThreads / kDim) + threadIdx.x / kDim; query < queries; query += groups) {
    const float own = q[static_cast<size_t>(query) * kDim + d];
    float maximum = -INFINITY, sum = 0.0f, result = 0.0f;
    for (int key = 0; key < keys; ++key) {
      float score = own * k[key * kDim + d];
#pragma unroll
      for (int mask = kDim / 2; mask > 0; mask /= 2) score += __shfl_xor_sync(half, score, mask, kDim);
      score *= scale;
      const float larger = fmaxf(maximum, score);
      const float shrink = expf(maximum - larger), weight = expf(score - larger);
      maximum = larger;
      sum = sum * shrink + weight;
      result = result * shrink + weight * v[key * kDim + d];
    }
    out[static_cast<size_t>(query) * kDim + d] = result / sum;
  }
}

extern "C" void launch(const float* q, const float* k, const float* v, float* out, int queries, int keys, float scale) {
  static int limit = 0;
  if (limit == 0) {
    cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
    cudaFuncSetAttribute(Attention<true>, cudaFuncAttributeMaxDynamicSharedMemorySize, limit);
  }
  const long long bytes = 2LL * keys * kDim * static_cast<long long>(sizeof(float));
  const int blocks = std::min((queries + 7) / 8, 1056);
  if (bytes <= limit) {
    Attention<true><<<blocks, kThreads, bytes>>>(q, k, v, out, queries, keys, scale);
  } else {
    Attention<false><<<blocks, kThreads>>>(q, k, v, out, queries, keys, scale);
  }
}
