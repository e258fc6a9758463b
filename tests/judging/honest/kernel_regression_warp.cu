// problem: problems/kernel_regression
// style: a warp a query, keys dealt to lanes, sixteen sums joined by butterflies at the end; float4 loads
// cuda: correct
// sim: correct
constexpr int kDim = 16;

__device__ float4 operator-(float4 a, float4 b) { return make_float4(a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w); }
__device__ float Square(float4 a) { return a.x * a.x + a.y * a.y + a.z * a.z + a.w * a.w; }

__global__ void Regress(const float4* q, const float4* k, const float4* v, float4* out, int queries, int keys,
                        float bandwidth) {
  const int lane = threadIdx.x & 31, query = blockIdx.x * (blockDim.x / 32) + (threadIdx.x >> 5);
  if (query >= queries) return;
  float4 own[4];
#pragma unroll
  for (int p = 0; p < 4; ++p) own[p] = q[query * 4 + p];
  float nearest = INFINITY;
  for (int key = lane; key < keys; key += 32) {
    float distance = 0.0f;
#pragma unroll
    for (int p = 0; p < 4; ++p) distance += Square(own[p] - k[key * 4 + p]);
    nearest = fminf(nearest, distance);
  }
  for (int mask = 16; mask > 0; mask >>= 1) nearest = fminf(nearest, __shfl_xor_sync(0xffffffffu, nearest, mask));
  float sum = 0.0f, result[kDim] = {};
  for (int key = lane; key < keys; key += 32) {
    float distance = 0.0f;
#pragma unroll
    for (int p = 0; p < 4; ++p) distance += Square(own[p] - k[key * 4 + p]);
    const float weight = expf((nearest - distance) / bandwidth);
    sum += weight;
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      const float4 value = v[key * 4 + p];
      result[4 * p] += weight * value.x;
      result[4 * p + 1] += weight * value.y;
      result[4 * p + 2] += weight * value.z;
      result[4 * p + 3] += weight * value.w;
    }
  }
#pragma unroll
  for (int mask = 16; mask > 0; mask >>= 1) {
    sum += __shfl_xor_sync(0xffffffffu, sum, mask);
#pragma unroll
    for (int d = 0; d < kDim; ++d) result[d] += __shfl_xor_sync(0xffffffffu, result[d], mask);
  }
#pragma unroll
  for (int p = 0; p < 4; ++p) {
    if (lane == p) {
      out[query * 4 + p] = make_float4(result[4 * p] / sum, result[4 * p + 1] / sum, result[4 * p + 2] / sum,
                                       result[4 * p + 3] / sum);
    }
  }
}

extern "C" void launch(const float* q, const float* k, const float* v, float* out, int queries, int keys,
                       float bandwidth) {
  Regress<<<(queries + 3) / 4, 128>>>(reinterpret_cast<const float4*>(q), reinterpret_cast<const float4*>(k),
                                     reinterpret_cast<const float4*>(v), reinterpret_cast<float4*>(out), queries, keys,
                                     bandwidth);
}
