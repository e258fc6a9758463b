// problem: tests/evaluator/problems/row_sum
// style: cp.async of 16 bytes by inline PTX, a group, its wait, a barrier
// cuda: correct
// sim: correct
__global__ void Sum(const float* x, float* out) {
  __shared__ alignas(16) float tile[64];
  if (threadIdx.x < 16) {
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(&tile[4 * threadIdx.x]));
    const float* from = x + blockIdx.x * 64 + 4 * threadIdx.x;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 0;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < 64; ++k) sum += tile[k];
    out[blockIdx.x] = sum;
  }
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 64>>>(x, out); }
