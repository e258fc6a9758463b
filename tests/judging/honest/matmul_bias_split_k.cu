// problem: problems/matmul_bias_relu
// style: split along k: float atomics add the parts (grid z) onto zeros set by a memset, then bias and ReLU
// cuda: correct
// sim: correct
constexpr int kTile = 16, kParts = 4;

__global__ void Partial(const float* a, const float* b, float* out, int m, int n, int k) {
  __shared__ float as[kTile][kTile], bs[kTile][kTile + 1];
  const int row = blockIdx.y * kTile + threadIdx.y, col = blockIdx.x * kTile + threadIdx.x;
  const int tiles = (k + kTile - 1) / kTile;
  const int begin = tiles * blockIdx.z / kParts, end = tiles * (blockIdx.z + 1) / kParts;
  if (begin == end) return;
  float total = 0.0f;
  for (int t = begin; t < end; ++t) {
    const int ac = t * kTile + threadIdx.x, br = t * kTile + threadIdx.y;
    as[threadIdx.y][threadIdx.x] = row < m && ac < k ? a[static_cast<size_t>(row) * k + ac] : 0.0f;
    bs[threadIdx.y][threadIdx.x] = br < k && col < n ? b[static_cast<size_t>(br) * n + col] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int d = 0; d < kTile; ++d) total += as[threadIdx.y][d] * bs[d][threadIdx.x];
    __syncthreads();
  }
  if (row < m && col < n) atomicAdd(&out[static_cast<size_t>(row) * n + col], total);
}

__global__ void BiasRelu(const float* bias, float* out, int m, int n) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < static_cast<size_t>(m) * n; i += gridDim.x * blockDim.x) {
    out[i] = fmaxf(out[i] + bias[i % n], 0.0f);
  }
}

extern "C" void launch(const float* a, const float* b, const float* bias, float* out, int m, int n, int k) {
  const size_t elements = static_cast<size_t>(m) * n;
  cudaMemsetAsync(out, 0, elements * sizeof(float));
  Partial<<<dim3((n + kTile - 1) / kTile, (m + kTile - 1) / kTile, kParts), dim3(kTile, kTile)>>>(a, b, out, m, n, k);
  BiasRelu<<<static_cast<unsigned>(min((elements + 255) / 256, size_t{1056})), 256>>>(bias, out, m, n);
}
