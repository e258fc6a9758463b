// problem: problems/matmul
// style: 64 x 64 tiles, 4 x 4 outputs a thread, double buffered shared memory filled through registers
// cuda: correct
// sim: correct
constexpr int kTile = 64, kDepth = 8;

__global__ __launch_bounds__(256) void MatMul(const float* __restrict__ a, const float* __restrict__ b,
                                              float* __restrict__ out, int m, int n, int k) {
  __shared__ alignas(16) float as[2][kDepth][kTile + 4];
  __shared__ alignas(16) float bs[2][kDepth][kTile];
  const int thread = threadIdx.x, tx = thread % 16, ty = thread / 16;
  const int row0 = blockIdx.y * kTile, col0 = blockIdx.x * kTile;
  float fetched_a[2], fetched_b[2], total[4][4] = {};
  const auto fetch = [&](int depth) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int i = thread + 256 * h;
      const int ar = row0 + i / kDepth, ac = depth + i % kDepth;
      const int br = depth + i / kTile, bc = col0 + i % kTile;
      fetched_a[h] = ar < m && ac < k ? a[static_cast<size_t>(ar) * k + ac] : 0.0f;
      fetched_b[h] = br < k && bc < n ? b[static_cast<size_t>(br) * n + bc] : 0.0f;
    }
  };
  const auto put = [&](int buffer) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int i = thread + 256 * h;
      as[buffer][i % kDepth][i / kDepth] = fetched_a[h];
      bs[buffer][i / kTile][i % kTile] = fetched_b[h];
    }
  };
  fetch(0);
  put(0);
  __syncthreads();
  int buffer = 0;
  for (int depth = 0; depth < k; depth += kDepth, buffer ^= 1) {
    const bool more = depth + kDepth < k;
    if (more) fetch(depth + kDepth);
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
      const float4 av = *reinterpret_cast<const float4*>(&as[buffer][d][4 * ty]);
      const float4 bv = *reinterpret_cast<const float4*>(&bs[buffer][d][4 * tx]);
      const float ar[4] = {av.x, av.y, av.z, av.w}, br[4] = {bv.x, bv.y, bv.z, bv.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) total[i][j] = fmaf(ar[i], br[j], total[i][j]);
      }
    }
    if (more) put(buffer ^ 1);
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = row0 + 4 * ty + i;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int col = col0 + 4 * tx + j;
      if (row < m && col < n) out[static_cast<size_t>(row) * n + col] = total[i][j];
    }
  }
}

extern "C" void launch(const float* a, const float* b, float* out, int m, int n, int k) {
  MatMul<<<dim3((n + kTile - 1) / kTile, (m + kTile - 1) / kTile), 256>>>(a, b, out, m, n, k);
}
