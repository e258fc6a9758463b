// problem: problems/matmul
// style: the right matrix's tiles in shared memory, a barrier before and after each use
// cuda: correct
// sim: correct
constexpr int kTile = 16;

__global__ void Matmul(const float* a, const float* b, float* out, int m, int n, int k) {
  __shared__ float right[kTile][kTile];
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = blockIdx.y * kTile + y, col = blockIdx.x * kTile + x;
  float sum = 0;
#pragma unroll 1
  for (int start = 0; start < k; start += kTile) {
    right[y][x] = start + y < k && col < n ? b[(start + y) * n + col] : 0.0f;
    __syncthreads();
#pragma unroll 1
    for (int i = 0; i < kTile && start + i < k; ++i) {
      const float left = row < m ? a[row * k + start + i] : 0.0f;
      sum += left * right[i][x];
    }
    __syncthreads();
  }
  if (row < m && col < n) out[row * n + col] = sum;
}

extern "C" void launch(const float* a, const float* b, float* out, int m, int n, int k) {
  Matmul<<<dim3((n + kTile - 1) / kTile, (m + kTile - 1) / kTile), dim3(kTile, kTile)>>>(a, b, out, m, n, k);
}
