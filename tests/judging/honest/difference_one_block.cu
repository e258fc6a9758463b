// problem: problems/sum_absolute_difference
// style: one block of 1024 threads for everything; two accumulators a thread
// cuda: correct
// sim: correct
__global__ __launch_bounds__(1024, 1) void MeanDifference(const float* a, const float* b, float* out, int n) {
  __shared__ float of_warp[32];
  float even = 0.0f, odd = 0.0f;
  int i = threadIdx.x;
  for (; i + 1024 < n; i += 2048) {
    even += fabsf(a[i] - b[i]);
    odd += fabsf(a[i + 1024] - b[i + 1024]);
  }
  if (i < n) even += fabsf(a[i] - b[i]);
  float sum = even + odd;
  for (int mask = 1; mask < 32; mask *= 2) sum += __shfl_xor_sync(~0u, sum, mask);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  sum = of_warp[threadIdx.x];
  for (int mask = 1; mask < 32; mask *= 2) sum += __shfl_xor_sync(~0u, sum, mask);
  if (threadIdx.x == 0) out[0] = sum / n;
}

extern "C" void launch(const float* a, const float* b, float* out, int n) {
  MeanDifference<<<1, 1024>>>(a, b, out, n);
}
