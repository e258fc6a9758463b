// problem: problems/row_norms
// style: a block a row; scalar head up to an aligned address, float4 body, scalar tail; double accumulator
// cuda: correct
// sim: correct
#include <cstdint>

__global__ void RowNorms(const float* __restrict__ x, float* __restrict__ out, int cols) {
  __shared__ double sums[128];
  const float* row = x + static_cast<size_t>(blockIdx.x) * cols;
  const int misaligned = (reinterpret_cast<std::uintptr_t>(row) / sizeof(float)) % 4;
  const int head = min((4 - misaligned) % 4, cols);
  const int vectors = (cols - head) / 4;
  double sum = 0.0;
  if (threadIdx.x < head) sum += static_cast<double>(row[threadIdx.x]) * row[threadIdx.x];
  const float4* body = reinterpret_cast<const float4*>(row + head);
  for (int i = threadIdx.x; i < vectors; i += blockDim.x) {
    const float4 v = body[i];
    sum += static_cast<double>(v.x * v.x + v.y * v.y) + static_cast<double>(v.z * v.z + v.w * v.w);
  }
  for (int i = head + 4 * vectors + threadIdx.x; i < cols; i += blockDim.x) {
    sum += static_cast<double>(row[i]) * row[i];
  }
  sums[threadIdx.x] = sum;
  for (int half = 64; half > 0; half >>= 1) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) out[blockIdx.x] = static_cast<float>(sqrt(sums[0]));
}

extern "C" void launch(const float* x, float* out, int rows, int cols) { RowNorms<<<rows, 128>>>(x, out, cols); }
