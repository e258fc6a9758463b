// problem: problems/softmax_long
// style: one scratch array for two reductions, with a barrier before it is used again
// cuda: correct
// sim: correct
__device__ float Reduce(float v, float* scratch, bool maximum) {
  for (int d = 16; d > 0; d /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, v, d);
    v = maximum ? fmaxf(v, other) : v + other;
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = v;
  __syncthreads();
  v = maximum ? -INFINITY : 0.0f;
#pragma unroll 1
  for (int w = 0; w < 8; ++w) v = maximum ? fmaxf(v, scratch[w]) : v + scratch[w];
  return v;
}

__global__ void Softmax(const float* x, float* out, int cols) {
  __shared__ float scratch[8];
  const size_t row = static_cast<size_t>(blockIdx.x) * cols;
  float most = -INFINITY;
  for (int c = threadIdx.x; c < cols; c += 256) most = fmaxf(most, x[row + c]);
  most = Reduce(most, scratch, true);
  float sum = 0;
  for (int c = threadIdx.x; c < cols; c += 256) sum += expf(x[row + c] - most);
  sum = Reduce(sum, scratch, false);
  for (int c = threadIdx.x; c < cols; c += 256) out[row + c] = expf(x[row + c] - most) / sum;
}

extern "C" void launch(const float* x, float* out, int rows, int cols) { Softmax<<<rows, 256>>>(x, out, cols); }
