// Matrix product: out = a b.
// layout: a[m][k], b[k][n], out[m][n]
// schedule: matmul coalesce



// kernels: a thread computes one output, neighbouring threads in neighbouring columns.
__global__ void matmul_kernel(const float* a, const float* b, float* out, int m, int n, int k) {
  const int row = blockIdx.y * 16 + threadIdx.y;
  const int col = blockIdx.x * 16 + threadIdx.x;
  if (row >= m || col >= n) return;
  float total = 0.0f;
  for (int i = 0; i < k; ++i) {
    total += a[(size_t)row * k + i] * b[(size_t)i * n + col];
  }
  out[(size_t)row * n + col] = total;
}

extern "C" void launch(const float* a, const float* b, float* out, int m, int n, int k) {
  const dim3 blocks((n + 15) / 16, (m + 15) / 16);
  matmul_kernel<<<blocks, dim3(16, 16)>>>(a, b, out, m, n, k);
}
