// problem: tests/evaluator/problems/row_sum
// bug: a thread's four accumulators, indexed at run time, are added to before they are set
// finding: uninitialised in Sum: that the thread has not written, of the thread's local arrays (16 bytes)
__global__ void Sum(const float* x, float* out, int rows, int ways) {
  const int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float of_way[4];
#pragma unroll 1
  for (int k = 0; k < 64; ++k) of_way[k % ways] += x[r * 64 + k];  // found
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < ways; ++k) sum += of_way[k];
  out[r] = sum;
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<(rows + 31) / 32, 32>>>(x, out, rows, 4); }
