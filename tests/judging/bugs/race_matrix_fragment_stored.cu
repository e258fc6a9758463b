// problem: problems/matmul
// bug: the accumulators of one warp's fragment are read by the other warp without a barrier
// finding: race in Matmul: reads, shared array 'result' (1024 bytes), writes, barrier between
#include <mma.h>

using namespace nvcuda;

// One tile of 16 x 16 a block: warp 0 multiplies, both warps store it, in single precision apart.
__global__ void Matmul(const float* a, const float* b, float* out, int m, int n, int k) {
  __shared__ float result[256];
  __shared__ __half left[256], right[256];
  const int t = threadIdx.x, row = blockIdx.y * 16, col = blockIdx.x * 16;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int start = 0; start < k; start += 16) {
    for (int i = t; i < 256; i += 64) {
      const int y = i / 16, x = i % 16;
      left[i] = __float2half(row + y < m && start + x < k ? a[(row + y) * k + start + x] : 0.0f);
      right[i] = __float2half(start + y < k && col + x < n ? b[(start + y) * n + col + x] : 0.0f);
    }
    __syncthreads();
    if (t < 32) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> l;
      wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> r;
      wmma::load_matrix_sync(l, left, 16);
      wmma::load_matrix_sync(r, right, 16);
      wmma::mma_sync(sum, l, r, sum);
    }
    __syncthreads();
  }
  if (t < 32) wmma::store_matrix_sync(result, sum, 16, wmma::mem_row_major);  // found
  for (int i = t; i < 256; i += 64) {
    if (row + i / 16 < m && col + i % 16 < n) out[(row + i / 16) * n + col + i % 16] = result[i];  // found
  }
}

extern "C" void launch(const float* a, const float* b, float* out, int m, int n, int k) {
  Matmul<<<dim3((n + 15) / 16, (m + 15) / 16), 64>>>(a, b, out, m, n, k);
}
