// problem: tests/evaluator/problems/row_sum
// bug: the total is read while other warps still add to it
// twin: honest/row_sum_shared_total
// finding: race in Sum: reads, shared array 'total' (4 bytes), updates, barrier between
__global__ void Sum(const float* x, float* out) {
  __shared__ float total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  float v = x[blockIdx.x * 64 + threadIdx.x];
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
  if (threadIdx.x % 32 == 0) atomicAdd(&total, v);  // found
  if (threadIdx.x == 0) out[blockIdx.x] = total;  // found
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 64>>>(x, out); }
