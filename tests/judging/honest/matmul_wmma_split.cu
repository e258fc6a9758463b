// problem: problems/matmul
// style: tensor cores in tf32 (wmma); each float32 split in three so that nothing of it is lost, six products, edges in shared memory
// cuda: correct
// sim: correct
#include <mma.h>

using namespace nvcuda;

constexpr int kWarps = 4;  // 2 x 2 tiles of 16 x 16

__global__ void MatMul(const float* a, const float* b, float* out, int m, int n, int k) {
  __shared__ alignas(32) float as[32][8], bs[8][32], tile[32][32];
  const int warp = threadIdx.x / 32, wr = warp / 2 * 16, wc = warp % 2 * 16;
  const int row0 = blockIdx.y * 32, col0 = blockIdx.x * 32;
  using FragmentA = wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major>;
  using FragmentB = wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major>;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> large, small, step;
  wmma::fill_fragment(small, 0.0f);
  wmma::fill_fragment(large, 0.0f);
  for (int depth = 0; depth < k; depth += 8) {
    for (int i = threadIdx.x; i < 256; i += 32 * kWarps) {
      const int ar = row0 + i / 8, ac = depth + i % 8, br = depth + i / 32, bc = col0 + i % 32;
      as[i / 8][i % 8] = ar < m && ac < k ? a[static_cast<size_t>(ar) * k + ac] : 0.0f;
      bs[i / 32][i % 32] = br < k && bc < n ? b[static_cast<size_t>(br) * n + bc] : 0.0f;
    }
    __syncthreads();
    FragmentA af[3];
    FragmentB bf[3];
    wmma::load_matrix_sync(af[0], &as[wr][0], 8);
    wmma::load_matrix_sync(bf[0], &bs[0][wc], 32);
    const auto split = [](auto* parts) {
      for (int e = 0; e < parts[0].num_elements; ++e) {
        float rest = parts[0].x[e];
        for (int p = 0; p < 3; ++p) {
          parts[p].x[e] = wmma::__float_to_tf32(rest);
          rest -= parts[p].x[e];
        }
      }
    };
    split(af);
    split(bf);
    for (int p = 2; p >= 0; --p) {
      for (int q = 2 - p; q >= 0; --q) {
        if (p + q > 0) wmma::mma_sync(small, af[p], bf[q], small);
      }
    }
    // Tensor cores round their sums towards zero: the running total is kept by ordinary additions.
    wmma::fill_fragment(step, 0.0f);
    wmma::mma_sync(step, af[0], bf[0], step);
    for (int e = 0; e < step.num_elements; ++e) large.x[e] += step.x[e];
    __syncthreads();
  }
  for (int e = 0; e < large.num_elements; ++e) large.x[e] += small.x[e];
  wmma::store_matrix_sync(&tile[wr][wc], large, 32, wmma::mem_row_major);
  __syncthreads();
  for (int i = threadIdx.x; i < 1024; i += 32 * kWarps) {
    const int row = row0 + i / 32, col = col0 + i % 32;
    if (row < m && col < n) out[static_cast<size_t>(row) * n + col] = tile[i / 32][i % 32];
  }
}

extern "C" void launch(const float* a, const float* b, float* out, int m, int n, int k) {
  MatMul<<<dim3((n + 31) / 32, (m + 31) / 32), 32 * kWarps>>>(a, b, out, m, n, k);
}
