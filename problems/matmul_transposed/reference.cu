// Matrix product: out = a b^T.
// layout: a[m][k], b[n][k], out[m][n]
// schedule: matmul



// kernels: a thread computes one output, neighbouring threads in neighbouring rows.
__global__ void matmul_kernel(const float* a, const float* b, float* out, int m, int n, int k) {
  const int row = blockIdx.y * 16 + threadIdx.x;
  const int col = blockIdx.x * 16 + threadIdx.y;
  if (row >= m || col >= n) return;
  float total = 0.0f;
  for (int i = 0; i < k; ++i) {
    total += a[(size_t)row * k + i] * b[(size_t)col * k + i];
  }
  out[(size_t)row * n + col] = total;
}

extern "C" void launch(const float* a, const float* b, float* out, int m, int n, int k) {
  const dim3 blocks((n + 15) / 16, (m + 15) / 16);
  matmul_kernel<<<blocks, dim3(16, 16)>>>(a, b, out, m, n, k);
}
