// problem: tests/evaluator/problems/row_sum
// style: a warp hands its sum to another one by a volatile flag in shared memory, between fences of the block
// cuda: correct
// sim: correct
__global__ void Sum(const float* x, float* out) {
  __shared__ float half;
  __shared__ volatile int flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  float sum = x[blockIdx.x * 64 + threadIdx.x];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
  if (threadIdx.x == 32) {
    half = sum;
    __threadfence_block();
    flag = 1;
  }
  if (threadIdx.x == 0) {
    while (flag == 0) {
    }
    __threadfence_block();
    out[blockIdx.x] = sum + half;
  }
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 64>>>(x, out); }
