// problem: problems/softmax_long
// style: online softmax: pairs (maximum, sum) joined by shuffles, then by shared memory; a block a row
// cuda: correct
// sim: correct
#include <cfloat>

struct Pair {
  float maximum, sum;
};

__device__ __forceinline__ Pair Join(Pair a, Pair b) {
  const float maximum = fmaxf(a.maximum, b.maximum);
  return {maximum, a.sum * __expf(a.maximum - maximum) + b.sum * __expf(b.maximum - maximum)};
}

__device__ Pair WarpJoin(Pair p) {
#pragma unroll
  for (int mask = 16; mask > 0; mask >>= 1) {
    const Pair other = {__shfl_xor_sync(0xffffffffu, p.maximum, mask), __shfl_xor_sync(0xffffffffu, p.sum, mask)};
    p = Join(p, other);
  }
  return p;
}

__global__ __launch_bounds__(256) void Softmax(const float* __restrict__ x, float* __restrict__ out, int cols) {
  __shared__ Pair of_warp[8];
  const float* row = x + static_cast<size_t>(blockIdx.x) * cols;
  Pair p = {-FLT_MAX, 0.0f};
  for (int col = threadIdx.x; col < cols; col += 256) p = Join(p, {row[col], 1.0f});
  p = WarpJoin(p);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = p;
  __syncthreads();
  p = of_warp[0];
#pragma unroll
  for (int w = 1; w < 8; ++w) p = Join(p, of_warp[w]);
  const float scale = 1.0f / p.sum;
  float* out_row = out + static_cast<size_t>(blockIdx.x) * cols;
  for (int col = threadIdx.x; col < cols; col += 256) out_row[col] = __expf(row[col] - p.maximum) * scale;
}

extern "C" void launch(const float* x, float* out, int rows, int cols) { Softmax<<<rows, 256>>>(x, out, cols); }
