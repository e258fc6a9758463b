// problem: tests/evaluator/problems/row_sum
// bug: a thread's window of eight values is indexed up to eight
// finding: out_of_bounds in Sum: writes 4 bytes out of bounds, of the thread's local arrays (32 bytes)
__global__ void Sum(const float* x, float* out, int rows, int width) {
  const int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float window[8];
  float sum = 0;
#pragma unroll 1
  for (int start = 0; start < 64; start += width) {
#pragma unroll 1
    for (int k = 0; k <= width; ++k) window[k] = start + k < 64 ? x[r * 64 + start + k] : 0.0f;  // found
#pragma unroll 1
    for (int k = 0; k < width; ++k) sum += window[k];
  }
  out[r] = sum;
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<(rows + 31) / 32, 32>>>(x, out, rows, 8); }
