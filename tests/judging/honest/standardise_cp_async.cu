// problem: problems/standardise_readings
// style: the row fetched by cp.async (inline PTX) into dynamic shared memory above 48 KiB, commit and wait groups
// cuda: correct
// sim: correct
constexpr int kThreads = 256, kMostCols = 16384;

__device__ __forceinline__ void CopyAsync4(float* to, const float* from) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address), "l"(from) : "memory");
}

__device__ float BlockSum(float value, float* scratch) {
  for (int mask = 16; mask > 0; mask >>= 1) value += __shfl_xor_sync(0xffffffffu, value, mask);
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
  __syncthreads();
  float total = 0.0f;
  for (int w = 0; w < kThreads / 32; ++w) total += scratch[w];
  __syncthreads();
  return total;
}

__global__ void Standardise(const float* x, const float* weight, float* out, int cols, float epsilon) {
  extern __shared__ float row[];
  __shared__ float scratch[kThreads / 32];
  const size_t first = static_cast<size_t>(blockIdx.x) * cols;
  const int kept = min(cols, kMostCols);
  for (int c = threadIdx.x; c < kept; c += kThreads) CopyAsync4(row + c, x + first + c);
  asm volatile("cp.async.commit_group;" ::: "memory");
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  // A thread reads only what it copied itself.
  const auto load = [&](int c) { return c < kMostCols ? row[c] : x[first + c]; };
  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += kThreads) sum += load(c);
  const float mean = BlockSum(sum, scratch) / cols;
  float squares = 0.0f;
  for (int c = threadIdx.x; c < cols; c += kThreads) squares += (load(c) - mean) * (load(c) - mean);
  const float scale = rsqrtf(BlockSum(squares, scratch) / cols + epsilon);
  for (int c = threadIdx.x; c < cols; c += kThreads) out[first + c] = (load(c) - mean) * scale * weight[c];
}

extern "C" void launch(const float* x, const float* weight, float* out, int rows, int cols, float epsilon) {
  static const cudaError_t allowed = cudaFuncSetAttribute(Standardise, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                          kMostCols * sizeof(float));
  if (allowed != cudaSuccess) return;
  Standardise<<<rows, kThreads, min(cols, kMostCols) * sizeof(float)>>>(x, weight, out, cols, epsilon);
}
