// problem: problems/row_norms
// style: last block of a row: every thread fences its own partial, a barrier, then one thread counts; many partials a block
// cuda: correct
// sim: correct
constexpr int kThreads = 64, kSplits = 3, kBatch = 512;
__device__ float partials[kBatch][kSplits][kThreads];
__device__ unsigned counts[kBatch];

__global__ void RowNorms(const float* x, float* out, int cols) {
  __shared__ unsigned place;
  __shared__ float sums[kThreads];
  const int row = blockIdx.y;
  float sum = 0.0f;
  for (int c = blockIdx.x * kThreads + threadIdx.x; c < cols; c += kSplits * kThreads) {
    const float value = x[static_cast<size_t>(row) * cols + c];
    sum += value * value;
  }
  partials[row][blockIdx.x][threadIdx.x] = sum;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) place = atomicInc(&counts[row], kSplits - 1);  // wraps to zero by itself
  __syncthreads();
  if (place != kSplits - 1) return;
  sum = 0.0f;
  for (int s = 0; s < kSplits; ++s) sum += __ldcg(&partials[row][s][threadIdx.x]);
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[row] = sqrtf(sums[0]);
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  for (int first = 0; first < rows; first += kBatch) {
    RowNorms<<<dim3(kSplits, min(kBatch, rows - first)), kThreads>>>(x + static_cast<size_t>(first) * cols, out + first,
                                                                     cols);
  }
}
