// problem: problems/centre_readings
// style: moments about the row's first element, shared atomics on float to join warps
// cuda: correct
// sim: correct
__global__ void Standardise(const float* x, float* out, int cols, float epsilon) {
  __shared__ float sums[2];
  if (threadIdx.x < 2) sums[threadIdx.x] = 0.0f;
  __syncthreads();
  const float* row = x + static_cast<size_t>(blockIdx.x) * cols;
  const float shift = row[0];
  float sum = 0.0f, squares = 0.0f;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) {
    const float v = row[c] - shift;
    sum += v;
    squares += v * v;
  }
  for (int d = 16; d > 0; d /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, d);
    squares += __shfl_down_sync(0xffffffffu, squares, d);
  }
  if (threadIdx.x % 32 == 0) {
    atomicAdd(&sums[0], sum);
    atomicAdd(&sums[1], squares);
  }
  __syncthreads();
  const float mean = sums[0] / cols;
  const float scale = rsqrtf(sums[1] / cols - mean * mean + epsilon);
  for (int c = threadIdx.x; c < cols; c += blockDim.x) {
    out[static_cast<size_t>(blockIdx.x) * cols + c] = (row[c] - shift - mean) * scale;
  }
}

extern "C" void launch(const float* x, float* out, int rows, int cols, float epsilon) {
  Standardise<<<rows, 320>>>(x, out, cols, epsilon);
}
