// problem: tests/evaluator/problems/row_sum
// bug: wait_group 0 waits for groups that were committed, and none was
// twin: honest/row_sum_async_ptx
// finding: race in Sum: reads 4 bytes, shared array 'tile' (256 bytes), by cp.async, no wait has completed that copy
__global__ void Sum(const float* x, float* out) {
  __shared__ alignas(16) float tile[64];
  if (threadIdx.x < 16) {
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(&tile[4 * threadIdx.x]));
    const float* from = x + blockIdx.x * 64 + 4 * threadIdx.x;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));  // found
    asm volatile("cp.async.wait_group 0;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < 64; ++k) sum += tile[k];  // found
    out[blockIdx.x] = sum;
  }
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 64>>>(x, out); }
