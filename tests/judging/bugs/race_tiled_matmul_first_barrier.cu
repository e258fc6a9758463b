// problem: problems/matmul
// bug: no barrier between loading a tile and multiplying with it, only one before the next tile is loaded
// twin: honest/matmul_tile_barriers
// finding: race in Matmul: reads, shared array, writes, barrier between
constexpr int kTile = 16;

__global__ void Matmul(const float* a, const float* b, float* out, int m, int n, int k) {
  __shared__ float left[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y, col = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  left[threadIdx.y][threadIdx.x] = 0;
  __syncthreads();
#pragma unroll 1
  for (int start = 0; start < k; start += kTile) {
    left[threadIdx.x][threadIdx.y] = row - threadIdx.y + threadIdx.x < m && start + threadIdx.y < k  // found
                                         ? a[(row - threadIdx.y + threadIdx.x) * k + start + threadIdx.y]
                                         : 0.0f;
#pragma unroll 1
    for (int i = 0; i < kTile && start + i < k; ++i) {
      const float right = col < n ? b[(start + i) * n + col] : 0.0f;
      sum += left[threadIdx.y][i] * right;  // found
    }
    __syncthreads();
  }
  if (row < m && col < n) out[row * n + col] = sum;
}

extern "C" void launch(const float* a, const float* b, float* out, int m, int n, int k) {
  Matmul<<<dim3((n + kTile - 1) / kTile, (m + kTile - 1) / kTile), dim3(kTile, kTile)>>>(a, b, out, m, n, k);
}
