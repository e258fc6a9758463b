// Attention: out[q] = sum over keys of softmax(scale * q.k) * v.
// layout: q[queries][kDim], k[keys][kDim], v[keys][kDim], out[queries][kDim]
// schedule: attention one_pass tile=32 vectorize=4

constexpr int kDim = 16;

__device__ float term(float q, float k) { return q * k; }
__device__ float score(float total, float scale) { return total * scale; }

// kernels: a thread a query, one sweep over the keys, staged in shared memory.
constexpr float kLowest = -3.402823466e38f;  // the most negative float

__global__ void attention_kernel(const float* q, const float* k, const float* v, float* out, int queries, int keys, float scale) {
  __shared__ __align__(16) float k_tile[32][kDim];
  __shared__ __align__(16) float v_tile[32][kDim];
  const int own_query = blockIdx.x * blockDim.x + threadIdx.x;
  const int query = min(own_query, queries - 1);  // threads beyond the end repeat the last query
  float maximum = kLowest;
  float sum = 0.0f;
  float result[kDim] = {};
  for (int start = 0; start < keys; start += 32) {
    const int count = min(32, keys - start);
    for (int element = threadIdx.x * 4; element < count * kDim; element += blockDim.x * 4) {
      *reinterpret_cast<float4*>(&k_tile[element / kDim][element % kDim]) = *reinterpret_cast<const float4*>(&k[(size_t)(start + element / kDim) * kDim + element % kDim]);
      *reinterpret_cast<float4*>(&v_tile[element / kDim][element % kDim]) = *reinterpret_cast<const float4*>(&v[(size_t)(start + element / kDim) * kDim + element % kDim]);
    }
    __syncthreads();
    for (int j = 0; j < count; ++j) {
      const int key = start + j;
      float total = 0.0f;
      #pragma unroll
      for (int d = 0; d < kDim; d += 4) {
        const float4 element = *reinterpret_cast<const float4*>(&k_tile[j][d]);
        total += term(q[(size_t)query * kDim + d], element.x);
        total += term(q[(size_t)query * kDim + d + 1], element.y);
        total += term(q[(size_t)query * kDim + d + 2], element.z);
        total += term(q[(size_t)query * kDim + d + 3], element.w);
      }
      float weight = 0.0f;
      const float current = score(total, scale);
      if (current > maximum) {
        const float scale = expf(maximum - current);
        sum *= scale;
        #pragma unroll
        for (int d = 0; d < kDim; ++d) result[d] *= scale;
        maximum = current;
      }
      weight = expf(current - maximum);
      sum += weight;
      #pragma unroll
      for (int d = 0; d < kDim; d += 4) {
        const float4 element = *reinterpret_cast<const float4*>(&v_tile[j][d]);
        result[d] += weight * element.x;
        result[d + 1] += weight * element.y;
        result[d + 2] += weight * element.z;
        result[d + 3] += weight * element.w;
      }
    }
    __syncthreads();  // the tiles may be written again
  }
  if (own_query < queries) {
    #pragma unroll
    for (int d = 0; d < kDim; ++d) out[(size_t)query * kDim + d] = result[d] / sum;
  }
}

extern "C" void launch(const float* q, const float* k, const float* v, float* out, int queries, int keys, float scale) {
  attention_kernel<<<(queries + 127) / 128, 128>>>(q, k, v, out, queries, keys, scale);
}
