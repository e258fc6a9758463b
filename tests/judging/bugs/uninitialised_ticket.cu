// problem: tests/evaluator/problems/row_sum
// bug: the counter that gives out rows comes from cudaMalloc and is never set
// finding: uninitialised in Sum: reads 4 bytes that nothing has written, (4 bytes)
__global__ void Sum(const float* x, float* out, unsigned* next, int rows) {
  for (;;) {
    const unsigned r = atomicAdd(next, 1u);  // found
    if (r >= rows) return;
    float sum = 0;
    for (int k = 0; k < 64; ++k) sum += x[r * 64 + k];
    out[r] = sum;
  }
}

extern "C" void launch(const float* x, float* out, int rows) {
  unsigned* next = nullptr;
  cudaMalloc(&next, sizeof *next);
  Sum<<<1, 32>>>(x, out, next, rows);
  cudaFree(next);
}
