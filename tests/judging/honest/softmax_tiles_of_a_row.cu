// problem: problems/softmax_long
// style: passes a row through a tile of 2,048 elements, which only the timing size fills more than once
// sim: correct
// cuda: correct
#define THREADS 256
#define TILE 2048

__device__ float Combine(float value, bool is_max, float* of_warp) {
  for (int d = 16; d > 0; d >>= 1) {
    float other = __shfl_xor_sync(0xffffffffu, value, d);
    value = is_max ? fmaxf(value, other) : value + other;
  }
  if ((threadIdx.x & 31) == 0) of_warp[threadIdx.x >> 5] = value;
  __syncthreads();
  value = of_warp[threadIdx.x & 7];
  for (int d = 4; d > 0; d >>= 1) {
    float other = __shfl_xor_sync(0xffffffffu, value, d);
    value = is_max ? fmaxf(value, other) : value + other;
  }
  __syncthreads();
  return value;
}

__global__ void Softmax(const float* __restrict__ x, float* __restrict__ out, int cols) {
  __shared__ float tile[TILE];
  __shared__ float of_warp[8];
  const float* row = x + (size_t)blockIdx.x * cols;
  float* result = out + (size_t)blockIdx.x * cols;
  float largest = -INFINITY;
  for (int begin = 0; begin < cols; begin += TILE) {
    int n = min(TILE, cols - begin);
    for (int i = threadIdx.x; i < n; i += THREADS) tile[i] = row[begin + i];
    __syncthreads();
    for (int i = THREADS - 1 - threadIdx.x; i < n; i += THREADS) largest = fmaxf(largest, tile[i]);
    __syncthreads();
  }
  largest = Combine(largest, true, of_warp);
  float sum = 0.0f;
  for (int i = threadIdx.x; i < cols; i += THREADS) sum += expf(row[i] - largest);
  sum = Combine(sum, false, of_warp);
  for (int i = threadIdx.x; i < cols; i += THREADS) result[i] = expf(row[i] - largest) / sum;
}

extern "C" void launch(const float* x, float* out, int rows, int cols) { Softmax<<<rows, THREADS>>>(x, out, cols); }
