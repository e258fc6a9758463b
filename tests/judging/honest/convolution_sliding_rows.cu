// problem: problems/convolution_relu
// style: a thread a column walks down with a window of rows in registers; no shared memory; a pixel more at each step
// cuda: correct
// sim: correct
constexpr int kStrip = 16;

template <int kSize>
__global__ void Convolve(const float* __restrict__ x, const float* __restrict__ weights, float* __restrict__ out,
                         int height, int width, float bias) {
  constexpr int kRadius = kSize / 2;
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (col >= width) return;
  float weight[kSize][kSize];
#pragma unroll
  for (int i = 0; i < kSize * kSize; ++i) weight[i / kSize][i % kSize] = __ldg(weights + i);
  float window[kSize][kSize] = {};
  const int first = blockIdx.y * kStrip;
  for (int row = first - kRadius; row < min(first + kStrip, height) + kRadius; ++row) {
#pragma unroll
    for (int r = 0; r + 1 < kSize; ++r) {
#pragma unroll
      for (int c = 0; c < kSize; ++c) window[r][c] = window[r + 1][c];
    }
#pragma unroll
    for (int c = 0; c < kSize; ++c) {
      const int at = col + c - kRadius;
      const bool inside = row >= 0 && row < height && at >= 0 && at < width;
      window[kSize - 1][c] = inside ? __ldg(x + static_cast<size_t>(row) * width + at) : 0.0f;
    }
    const int centre = row - kRadius;
    if (centre < first) continue;
    float total = 0.0f;
#pragma unroll
    for (int r = 0; r < kSize; ++r) {
#pragma unroll
      for (int c = 0; c < kSize; ++c) total = fmaf(window[r][c], weight[r][c], total);
    }
    out[static_cast<size_t>(centre) * width + col] = fmaxf(total + bias, 0.0f);
  }
}

extern "C" void launch(const float* x, const float* weights, float* out, int height, int width, float bias) {
  Convolve<5><<<dim3((width + 63) / 64, (height + kStrip - 1) / kStrip), 64>>>(x, weights, out, height, width, bias);
}
