// problem: problems/standardise_readings
// style: several blocks a row; sums of the row by double atomics in a __device__ workspace that the last block clears
// cuda: correct
// sim: correct
constexpr int kSplits = 4, kBatch = 128, kThreads = 128;
struct RowState {
  double sum, squares;
  unsigned blocks;
};
__device__ RowState states[kBatch];
__device__ float2 mean_and_scale[kBatch];

__device__ double WarpSum(double v) {
  for (int d = 16; d > 0; d >>= 1) v += __shfl_down_sync(0xffffffffu, v, d);
  return v;
}

__global__ void Statistics(const float* x, int cols, float epsilon) {
  RowState* state = &states[blockIdx.y];
  const float* row = x + static_cast<size_t>(blockIdx.y) * cols;
  double sum = 0.0, squares = 0.0;
  for (int c = blockIdx.x * kThreads + threadIdx.x; c < cols; c += kSplits * kThreads) {
    sum += row[c];
    squares += static_cast<double>(row[c]) * row[c];
  }
  sum = WarpSum(sum);
  squares = WarpSum(squares);
  if (threadIdx.x % 32 == 0) {
    atomicAdd(&state->sum, sum);
    atomicAdd(&state->squares, squares);
    __threadfence();
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  if (atomicAdd(&state->blocks, 1u) + 1 < kSplits) return;
  __threadfence();
  // Read where the atomics worked, and leave zeros for the next launch.
  const double mean = __longlong_as_double(atomicExch(reinterpret_cast<unsigned long long*>(&state->sum), 0ull)) / cols;
  const double square =
      __longlong_as_double(atomicExch(reinterpret_cast<unsigned long long*>(&state->squares), 0ull)) / cols;
  state->blocks = 0;
  mean_and_scale[blockIdx.y] =
      make_float2(static_cast<float>(mean), static_cast<float>(rsqrt(square - mean * mean + epsilon)));
}

__global__ void Apply(const float* x, const float* weight, float* out, int cols) {
  const float2 row = mean_and_scale[blockIdx.y];
  for (int c = blockIdx.x * kThreads + threadIdx.x; c < cols; c += gridDim.x * kThreads) {
    const size_t i = static_cast<size_t>(blockIdx.y) * cols + c;
    out[i] = (x[i] - row.x) * row.y * weight[c];
  }
}

extern "C" void launch(const float* x, const float* weight, float* out, int rows, int cols, float epsilon) {
  for (int first = 0; first < rows; first += kBatch) {
    const dim3 grid(kSplits, min(kBatch, rows - first));
    const size_t offset = static_cast<size_t>(first) * cols;
    Statistics<<<grid, kThreads>>>(x + offset, cols, epsilon);
    Apply<<<grid, kThreads>>>(x + offset, weight, out + offset, cols);
  }
}
