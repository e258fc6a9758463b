// Attention: out[q] = sum over keys of softmax(scale * q.k) * v.
// layout: q[queries][kDim], k[keys][kDim], v[keys][kDim], out[queries][kDim]
// schedule: attention

constexpr int kDim = 16;

__device__ float term(float q, float k) { return q * k; }
__device__ float score(float total, float scale) { return total * scale; }

// kernels: a thread a query, three sweeps over the keys.
constexpr float kLowest = -3.402823466e38f;  // the most negative float

__global__ void attention_kernel(const float* q, const float* k, const float* v, float* out, int queries, int keys, float scale) {
  const int own_query = blockIdx.x * blockDim.x + threadIdx.x;
  const int query = min(own_query, queries - 1);  // threads beyond the end repeat the last query
  float maximum = kLowest;
  for (int key = 0; key < keys; ++key) {
    float total = 0.0f;
    #pragma unroll
    for (int d = 0; d < kDim; ++d) {
      const float element = k[(size_t)key * kDim + d];
      total += term(q[(size_t)query * kDim + d], element);
    }
    maximum = fmaxf(maximum, score(total, scale));
  }
  float sum = 0.0f;
  for (int key = 0; key < keys; ++key) {
    float total = 0.0f;
    #pragma unroll
    for (int d = 0; d < kDim; ++d) {
      const float element = k[(size_t)key * kDim + d];
      total += term(q[(size_t)query * kDim + d], element);
    }
    sum += expf(score(total, scale) - maximum);
  }
  float result[kDim] = {};
  for (int key = 0; key < keys; ++key) {
    float total = 0.0f;
    #pragma unroll
    for (int d = 0; d < kDim; ++d) {
      const float element = k[(size_t)key * kDim + d];
      total += term(q[(size_t)query * kDim + d], element);
    }
    float weight = 0.0f;
    weight = expf(score(total, scale) - maximum);
    #pragma unroll
    for (int d = 0; d < kDim; ++d) {
      const float element = v[(size_t)key * kDim + d];
      result[d] += weight * element;
    }
  }
  if (own_query < queries) {
    #pragma unroll
    for (int d = 0; d < kDim; ++d) out[(size_t)query * kDim + d] = result[d] / sum;
  }
}

extern "C" void launch(const float* q, const float* k, const float* v, float* out, int queries, int keys, float scale) {
  attention_kernel<<<(queries + 127) / 128, 128>>>(q, k, v, out, queries, keys, scale);
}
