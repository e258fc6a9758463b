// Linear layer: out = relu(a b + bias).
// layout: a[m][k], b[k][n], bias[n], out[m][n]
// schedule: matmul coalesce

__device__ float finish(float total, float bias) { return fmaxf(total + bias, 0.0f); }

// kernels: a thread computes one output, neighbouring threads in neighbouring columns.
__global__ void matmul_kernel(const float* a, const float* b, const float* bias, float* out, int m, int n, int k) {
  const int row = blockIdx.y * 16 + threadIdx.y;
  const int col = blockIdx.x * 16 + threadIdx.x;
  if (row >= m || col >= n) return;
  float total = 0.0f;
  for (int i = 0; i < k; ++i) {
    total += a[(size_t)row * k + i] * b[(size_t)i * n + col];
  }
  out[(size_t)row * n + col] = total;
}

__global__ void finish_kernel(const float* a, const float* b, const float* bias, float* out, int m, int n, int k) {
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y;
  if (col >= n) return;
  const float total = out[(size_t)row * n + col];
  out[(size_t)row * n + col] = finish(total, bias[col]);
}

extern "C" void launch(const float* a, const float* b, const float* bias, float* out, int m, int n, int k) {
  const dim3 blocks((n + 15) / 16, (m + 15) / 16);
  matmul_kernel<<<blocks, dim3(16, 16)>>>(a, b, bias, out, m, n, k);
  finish_kernel<<<dim3((n + 255) / 256, m), 256>>>(a, b, bias, out, m, n, k);
}
