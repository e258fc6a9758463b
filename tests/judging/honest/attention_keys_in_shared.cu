// problem: problems/attention
// style: online softmax; keys and values pass through shared memory as float4 tiles; a thread a query
// cuda: correct
// sim: correct
constexpr int kDim = 16, kTile = 32, kThreads = 64;

__global__ __launch_bounds__(kThreads) void Attention(const float* __restrict__ q, const float* __restrict__ k,
                                                      const float* __restrict__ v, float* __restrict__ out, int queries,
                                                      int keys, float scale) {
  __shared__ alignas(16) float ks[kTile * kDim], vs[kTile * kDim];
  const int query = blockIdx.x * kThreads + threadIdx.x;
  const bool live = query < queries;
  float own[kDim], result[kDim] = {};
#pragma unroll
  for (int d = 0; d < kDim; ++d) own[d] = live ? q[static_cast<size_t>(query) * kDim + d] * scale : 0.0f;
  float maximum = -INFINITY, sum = 0.0f;
  for (int first = 0; first < keys; first += kTile) {
    const int count = min(kTile, keys - first);
    for (int i = threadIdx.x; i < count * kDim; i += kThreads) {
      ks[i] = k[static_cast<size_t>(first) * kDim + i];
      vs[i] = v[static_cast<size_t>(first) * kDim + i];
    }
    __syncthreads();
    for (int key = 0; key < count; ++key) {
      float score = 0.0f;
#pragma unroll
      for (int d = 0; d < kDim; d += 4) {
        const float4 part = *reinterpret_cast<const float4*>(&ks[key * kDim + d]);
        score += own[d] * part.x + own[d + 1] * part.y + own[d + 2] * part.z + own[d + 3] * part.w;
      }
      if (score > maximum) {
        const float shrink = __expf(maximum - score);
        maximum = score;
        sum *= shrink;
#pragma unroll
        for (int d = 0; d < kDim; ++d) result[d] *= shrink;
      }
      const float weight = __expf(score - maximum);
      sum += weight;
#pragma unroll
      for (int d = 0; d < kDim; ++d) result[d] = fmaf(weight, vs[key * kDim + d], result[d]);
    }
    __syncthreads();
  }
  if (!live) return;
  const float inverse = 1.0f / sum;
#pragma unroll
  for (int d = 0; d < kDim; ++d) out[static_cast<size_t>(query) * kDim + d] = result[d] * inverse;
}

extern "C" void launch(const float* q, const float* k, const float* v, float* out, int queries, int keys, float scale) {
  Attention<<<(queries + kThreads - 1) / kThreads, kThreads>>>(q, k, v, out, queries, keys, scale);
}
