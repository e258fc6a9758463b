// problem: tests/evaluator/problems/row_sum
// bug: 16 bytes are copied at once into rows of the tile that are padded to 65 floats
// finding: misaligned in Sum: writes 16 bytes at an address, not a multiple of 16, shared array 'tile' (520 bytes)
#include <cuda_pipeline.h>

__global__ void Sum(const float* x, float* out, int rows) {
  __shared__ alignas(16) float tile[2][65];
  const int part = threadIdx.x % 16, r = threadIdx.x / 16;
  const int row = blockIdx.x * 2 + r;
  if (row < rows)
    __pipeline_memcpy_async(&tile[r][4 * part], x + row * 64 + 4 * part, 16);  // found
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  if (part == 0 && row < rows) {
    float sum = 0;
    for (int k = 0; k < 64; ++k) sum += tile[r][k];
    out[row] = sum;
  }
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<(rows + 1) / 2, 32>>>(x, out, rows); }
