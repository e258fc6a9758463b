// Matrix product: out = a b.
// layout: a[m][k], b[k][n], out[m][n]
// schedule: matmul coalesce prefetch register=4 tile=16



// kernels: a block computes 64x64 outputs from tiles in shared memory, 4x4 a thread.
__device__ float load_or_zero(const float* matrix, int row, int column, int rows, int columns) {
  return row < rows && column < columns ? matrix[(size_t)row * columns + column] : 0.0f;
}

__global__ void matmul_kernel(const float* a, const float* b, float* out, int m, int n, int k) {
  __shared__ float a_tile[64][16];
  __shared__ float b_tile[16][64];
  const int row_lane = threadIdx.y;
  const int col_lane = threadIdx.x;
  const int thread = threadIdx.y * 16 + threadIdx.x;
  const int first_row = blockIdx.y * 64;
  const int first_col = blockIdx.x * 64;
  float totals[4][4] = {};
  float a_next[4];
  float b_next[4];
  for (int j = 0; j < 4; ++j) {
    const int element = thread + j * 256;
    const int along = element / 16;
    const int inner = element % 16;
    a_next[j] = load_or_zero(a, first_row + along, 0 + inner, m, k);
  }
  for (int j = 0; j < 4; ++j) {
    const int element = thread + j * 256;
    const int inner = element / 64;
    const int along = element % 64;
    b_next[j] = load_or_zero(b, 0 + inner, first_col + along, k, n);
  }
  for (int depth = 0; depth < k; depth += 16) {
    for (int j = 0; j < 4; ++j) {
      const int element = thread + j * 256;
      const int along = element / 16;
      const int inner = element % 16;
      a_tile[along][inner] = a_next[j];
    }
    for (int j = 0; j < 4; ++j) {
      const int element = thread + j * 256;
      const int inner = element / 64;
      const int along = element % 64;
      b_tile[inner][along] = b_next[j];
    }
    __syncthreads();
    if (depth + 16 < k) {  // the next step's elements arrive during this one's arithmetic
      for (int j = 0; j < 4; ++j) {
        const int element = thread + j * 256;
        const int along = element / 16;
        const int inner = element % 16;
        a_next[j] = load_or_zero(a, first_row + along, depth + 16 + inner, m, k);
      }
      for (int j = 0; j < 4; ++j) {
        const int element = thread + j * 256;
        const int inner = element / 64;
        const int along = element % 64;
        b_next[j] = load_or_zero(b, depth + 16 + inner, first_col + along, k, n);
      }
    }
    for (int i = 0; i < 16; ++i) {
      float a_value[4];
      float b_value[4];
      for (int r = 0; r < 4; ++r) a_value[r] = a_tile[row_lane + r * 16][i];
      for (int c = 0; c < 4; ++c) b_value[c] = b_tile[i][col_lane + c * 16];
      for (int r = 0; r < 4; ++r) {
        for (int c = 0; c < 4; ++c) totals[r][c] += a_value[r] * b_value[c];
      }
    }
    __syncthreads();
  }
  #pragma unroll
  for (int r = 0; r < 4; ++r) {
    #pragma unroll
    for (int c = 0; c < 4; ++c) {
      const int row = first_row + row_lane + r * 16;
      const int col = first_col + col_lane + c * 16;
      const float total = totals[r][c];
      if (row < m && col < n) out[(size_t)row * n + col] = total;
    }
  }
}

extern "C" void launch(const float* a, const float* b, float* out, int m, int n, int k) {
  const dim3 blocks((n + 63) / 64, (m + 63) / 64);
  matmul_kernel<<<blocks, dim3(16, 16)>>>(a, b, out, m, n, k);
}
