// problem: problems/prefix_sum
// style: a block a row; four neighbouring elements a thread, shuffle scans of warps, a scan of the warps' totals
// cuda: correct
// sim: correct
constexpr int kThreads = 256, kItems = 4;

__global__ __launch_bounds__(kThreads) void Scan(const float* __restrict__ x, float* __restrict__ out, int cols) {
  __shared__ float totals[kThreads / 32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const size_t row = static_cast<size_t>(blockIdx.x) * cols;
  float carry = 0.0f;
  for (int start = 0; start < cols; start += kThreads * kItems) {
    const int first = start + threadIdx.x * kItems;
    float item[kItems];
#pragma unroll
    for (int k = 0; k < kItems; ++k) item[k] = first + k < cols ? x[row + first + k] : 0.0f;
#pragma unroll
    for (int k = 1; k < kItems; ++k) item[k] += item[k - 1];
    float scan = item[kItems - 1];
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
      const float left = __shfl_up_sync(0xffffffffu, scan, d);
      if (lane >= d) scan += left;
    }
    if (lane == 31) totals[warp] = scan;
    __syncthreads();
    float before = carry, all = carry;
    for (int w = 0; w < kThreads / 32; ++w) {
      if (w < warp) before += totals[w];
      all += totals[w];
    }
    carry = all;
    const float left = __shfl_up_sync(0xffffffffu, scan, 1);
    if (lane > 0) before += left;
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (first + k < cols) out[row + first + k] = before + item[k];
    }
    __syncthreads();
  }
}

extern "C" void launch(const float* x, float* out, int rows, int cols) { Scan<<<rows, kThreads>>>(x, out, cols); }
