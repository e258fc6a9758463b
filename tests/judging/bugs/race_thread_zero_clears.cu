// problem: tests/evaluator/problems/row_sum
// bug: thread 0 sets the total to zero while other warps may already add to it
// twin: honest/row_sum_shared_total
// finding: race in Sum: atomically updates, shared array 'total' (4 bytes), writes, barrier between
__global__ void Sum(const float* x, float* out) {
  __shared__ float total;
  if (threadIdx.x == 0) total = 0;  // found
  float v = x[blockIdx.x * 64 + threadIdx.x];
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
  if (threadIdx.x % 32 == 0) atomicAdd(&total, v);  // found
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = total;
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 64>>>(x, out); }
