__global__ void product(int m, int n, int k, const float* a, const float* b, float* c) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i < m && j < n) {
    float sum = 0.0f;
    for (int t = 0; t < k; t++) sum += a[i * k + t] * b[t * n + j];
    c[i * n + j] = sum;
  }
}

extern "C" void launch(const float* a, const float* b, float* c, int m, int n, int k) {
  dim3 threads(16, 16);
  dim3 blocks((m + 15) / 16, (n + 15) / 16);
  product<<<blocks, threads>>>(m, n, k, a, b, c);
}
