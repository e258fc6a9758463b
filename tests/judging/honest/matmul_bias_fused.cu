// problem: problems/matmul_bias_relu
// style: bias and ReLU in the epilogue; 10 x 16 threads (160) with 40 x 32 outputs a block; the activation a functor
// cuda: correct
// sim: correct
constexpr int kThreadsX = 16, kThreadsY = 10, kPerX = 2, kPerY = 4, kDepth = 16;
constexpr int kCols = kThreadsX * kPerX, kRows = kThreadsY * kPerY;

struct Relu {
  __device__ float operator()(float v) const { return v > 0.0f ? v : 0.0f; }
};

template <typename Activation>
__global__ void Linear(const float* a, const float* b, const float* bias, float* out, int m, int n, int k,
                       Activation activation) {
  __shared__ float as[kRows][kDepth + 1], bs[kDepth][kCols];
  const int thread = threadIdx.y * kThreadsX + threadIdx.x, threads = kThreadsX * kThreadsY;
  float total[kPerY][kPerX] = {};
  for (int depth = 0; depth < k; depth += kDepth) {
    for (int i = thread; i < kRows * kDepth; i += threads) {
      const int r = blockIdx.y * kRows + i / kDepth, c = depth + i % kDepth;
      as[i / kDepth][i % kDepth] = r < m && c < k ? a[(size_t)r * k + c] : 0.0f;
    }
    for (int i = thread; i < kDepth * kCols; i += threads) {
      const int r = depth + i / kCols, c = blockIdx.x * kCols + i % kCols;
      bs[i / kCols][i % kCols] = r < k && c < n ? b[(size_t)r * n + c] : 0.0f;
    }
    __syncthreads();
    for (int d = 0; d < kDepth; ++d) {
#pragma unroll
      for (int i = 0; i < kPerY; ++i) {
#pragma unroll
        for (int j = 0; j < kPerX; ++j) {
          total[i][j] += as[threadIdx.y + i * kThreadsY][d] * bs[d][threadIdx.x + j * kThreadsX];
        }
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < kPerY; ++i) {
    for (int j = 0; j < kPerX; ++j) {
      const int r = blockIdx.y * kRows + threadIdx.y + i * kThreadsY;
      const int c = blockIdx.x * kCols + threadIdx.x + j * kThreadsX;
      if (r < m && c < n) out[(size_t)r * n + c] = activation(total[i][j] + bias[c]);
    }
  }
}

extern "C" void launch(const float* a, const float* b, const float* bias, float* out, int m, int n, int k) {
  Linear<<<dim3((n + kCols - 1) / kCols, (m + kRows - 1) / kRows), dim3(kThreadsX, kThreadsY)>>>(a, b, bias, out, m, n,
                                                                                                 k, Relu());
}
