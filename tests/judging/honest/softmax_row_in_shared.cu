// problem: problems/softmax_long
// style: the row kept in dynamic shared memory above 48 KiB after cudaFuncSetAttribute; another kernel for rows that do not fit
// cuda: correct
// sim: correct
constexpr int kThreads = 512, kWarps = kThreads / 32;

template <bool kMaximum>
__device__ float BlockJoin(float value, float* scratch) {
  const auto join = [](float a, float b) { return kMaximum ? fmaxf(a, b) : a + b; };
  for (int mask = 16; mask > 0; mask >>= 1) value = join(value, __shfl_xor_sync(0xffffffffu, value, mask));
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
  __syncthreads();
  value = scratch[threadIdx.x % kWarps];
  for (int mask = kWarps / 2; mask > 0; mask >>= 1) value = join(value, __shfl_xor_sync(0xffffffffu, value, mask));
  __syncthreads();
  return value;
}

template <bool kKept>
__global__ void Softmax(const float* x, float* out, int cols) {
  extern __shared__ float kept[];
  __shared__ float scratch[kWarps];
  const float* row = x + static_cast<size_t>(blockIdx.x) * cols;
  float* out_row = out + static_cast<size_t>(blockIdx.x) * cols;
  float maximum = -INFINITY;
  for (int col = threadIdx.x; col < cols; col += kThreads) {
    const float value = row[col];
    if (kKept) kept[col] = value;
    maximum = fmaxf(maximum, value);
  }
  maximum = BlockJoin<true>(maximum, scratch);
  float sum = 0.0f;
  for (int col = threadIdx.x; col < cols; col += kThreads) {
    const float power = expf((kKept ? kept[col] : row[col]) - maximum);
    if (kKept) kept[col] = power;
    sum += power;
  }
  sum = BlockJoin<false>(sum, scratch);
  for (int col = threadIdx.x; col < cols; col += kThreads) {
    out_row[col] = (kKept ? kept[col] : expf(row[col] - maximum)) / sum;
  }
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  static int most_bytes = -1;
  if (most_bytes < 0) {
    cudaDeviceGetAttribute(&most_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
    most_bytes -= kWarps * sizeof(float);
    cudaFuncSetAttribute(Softmax<true>, cudaFuncAttributeMaxDynamicSharedMemorySize, most_bytes);
  }
  // At least 64 KiB, so that the blocks of a multiprocessor do not crowd its L1 cache out.
  const long long bytes = max(65536LL, static_cast<long long>(cols) * static_cast<long long>(sizeof(float)));
  if (bytes <= most_bytes) {
    Softmax<true><<<rows, kThreads, bytes>>>(x, out, cols);
  } else {
    Softmax<false><<<rows, kThreads>>>(x, out, cols);
  }
}
