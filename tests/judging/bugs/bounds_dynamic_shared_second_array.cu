// problem: tests/evaluator/problems/row_sum
// bug: two arrays are carved out of dynamic shared memory, the launch asks for the first alone
// finding: out_of_bounds in Sum: writes 4 bytes out of bounds, past the end of shared array '(dynamic)' (256 bytes)
__global__ void Sum(const float* x, float* out) {
  extern __shared__ float memory[];
  float* tile = memory;
  float* sums = memory + 64;
  const int t = threadIdx.x;
  tile[t] = x[blockIdx.x * 64 + t];
  __syncthreads();
  if (t < 8) {
    float sum = 0;
    for (int k = 0; k < 8; ++k) sum += tile[t * 8 + k];
    sums[t] = sum;  // found
  }
  __syncthreads();
  if (t == 0) {
    float total = 0;
    for (int k = 0; k < 8; ++k) total += sums[k];
    out[blockIdx.x] = total;
  }
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 64, 64 * sizeof(float)>>>(x, out); }
