// problem: tests/evaluator/problems/row_sum
// style: two allocations on a side stream ordered by events; freed on the default stream after use
// cuda: correct
// sim: correct
__global__ void Halves(const float* x, float* halves, int rows, int half) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int i = 0; i < 32; ++i) sum += x[row * 64 + half * 32 + i];
  halves[row] = sum;
}

__global__ void Add(const float* a, const float* b, float* out, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) out[row] = a[row] + b[row];
}

extern "C" void launch(const float* x, float* out, int rows) {
  static cudaStream_t side = nullptr;
  static cudaEvent_t fork = nullptr, join = nullptr;
  if (side == nullptr) {
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&join, cudaEventDisableTiming);
  }
  const int blocks = (rows + 63) / 64;
  float *left = nullptr, *right = nullptr;
  cudaEventRecord(fork, 0);
  cudaStreamWaitEvent(side, fork, 0);
  cudaMallocAsync(&right, rows * sizeof(float), side);
  Halves<<<blocks, 64, 0, side>>>(x, right, rows, 1);
  cudaEventRecord(join, side);
  cudaMallocAsync(&left, rows * sizeof(float), 0);
  Halves<<<blocks, 64>>>(x, left, rows, 0);
  cudaStreamWaitEvent(0, join, 0);
  Add<<<blocks, 64>>>(left, right, out, rows);
  cudaFreeAsync(left, 0);
  cudaFreeAsync(right, 0);
}
