// problem: tests/evaluator/problems/row_sum
// bug: flags of a byte are set by one warp and read by the other without a barrier
// finding: race in Sum: reads, shared array 'present' (64 bytes), writes, barrier between
__global__ void Sum(const float* x, float* out) {
  __shared__ unsigned char present[64];
  __shared__ float values[64];
  const int t = threadIdx.x;
  present[t] = 0;
  values[t] = x[blockIdx.x * 64 + t];
  __syncthreads();
  present[63 - t] = 1 + t;  // found
  if (t == 0) {
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < 64; ++k) sum += present[k] != 255 ? values[k] : 0.0f;  // found
    out[blockIdx.x] = sum;
  }
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 64>>>(x, out); }
