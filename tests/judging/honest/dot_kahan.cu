// problem: problems/dot_product
// style: Kahan sums a thread, compensated joins in static shared memory, two launches and a __device__ workspace
// cuda: correct
// sim: correct
constexpr int kBlocks = 264, kThreads = 128;
__device__ float2 totals[kBlocks];  // the sum and what rounding took from it

__device__ float2 Add(float2 sum, float value) {
  const float corrected = __fsub_rn(value, sum.y);
  const float next = __fadd_rn(sum.x, corrected);
  return make_float2(next, __fsub_rn(__fsub_rn(next, sum.x), corrected));
}

__device__ float2 Join(float2 a, float2 b) { return Add(Add(a, b.x), -b.y); }

template <int kCount>
__device__ float2 Tree(float2 value) {
  __shared__ float2 values[kCount];
  values[threadIdx.x] = value;
  __syncthreads();
#pragma unroll
  for (int half = kCount / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) values[threadIdx.x] = Join(values[threadIdx.x], values[threadIdx.x + half]);
    __syncthreads();
  }
  return values[0];
}

__global__ void Partial(const float* a, const float* b, int n) {
  float2 sum = make_float2(0.0f, 0.0f);
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < n; i += kBlocks * kThreads) sum = Add(sum, a[i] * b[i]);
  sum = Tree<kThreads>(sum);
  if (threadIdx.x == 0) totals[blockIdx.x] = sum;
}

__global__ void Final(float* out) {
  float2 sum = make_float2(0.0f, 0.0f);
  for (int i = threadIdx.x; i < kBlocks; i += kThreads) sum = Join(sum, totals[i]);
  sum = Tree<kThreads>(sum);
  if (threadIdx.x == 0) out[0] = sum.x - sum.y;
}

extern "C" void launch(const float* a, const float* b, float* out, int n) {
  Partial<<<kBlocks, kThreads>>>(a, b, n);
  Final<<<1, kThreads>>>(out);
}
