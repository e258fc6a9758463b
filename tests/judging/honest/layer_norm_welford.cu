// problem: problems/layer_norm
// style: Welford's moments in one sweep, joined by shuffles and in shared memory
// cuda: correct
// sim: correct
struct Moments {
  float count, mean, squares;
};

__device__ Moments Join(const Moments& a, const Moments& b) {
  const float count = a.count + b.count;
  if (count == 0.0f) return a;
  const float delta = b.mean - a.mean, share = b.count / count;
  return {count, a.mean + delta * share, a.squares + b.squares + delta * delta * a.count * share};
}

__device__ Moments ShuffleXor(const Moments& m, int mask) {
  return {__shfl_xor_sync(0xffffffffu, m.count, mask), __shfl_xor_sync(0xffffffffu, m.mean, mask),
          __shfl_xor_sync(0xffffffffu, m.squares, mask)};
}

__global__ void LayerNorm(const float* x, const float* gamma, const float* beta, float* out, int cols, float epsilon) {
  __shared__ Moments of_warp[4];
  const float* row = x + static_cast<size_t>(blockIdx.x) * cols;
  Moments m = {0.0f, 0.0f, 0.0f};
  for (int c = threadIdx.x; c < cols; c += blockDim.x) {
    m.count += 1.0f;
    const float delta = row[c] - m.mean;
    m.mean += delta / m.count;
    m.squares += delta * (row[c] - m.mean);
  }
  for (int mask = 16; mask > 0; mask /= 2) m = Join(m, ShuffleXor(m, mask));
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = m;
  __syncthreads();
  m = Join(Join(of_warp[0], of_warp[1]), Join(of_warp[2], of_warp[3]));
  const float scale = rsqrtf(m.squares / m.count + epsilon);
  for (int c = threadIdx.x; c < cols; c += blockDim.x) {
    out[static_cast<size_t>(blockIdx.x) * cols + c] = (row[c] - m.mean) * scale * gamma[c] + beta[c];
  }
}

extern "C" void launch(const float* x, const float* gamma, const float* beta, float* out, int rows, int cols,
                       float epsilon) {
  LayerNorm<<<rows, 128>>>(x, gamma, beta, out, cols, epsilon);
}
