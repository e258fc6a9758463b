// One block a row.
__global__ void Centre(const float* x, float* out, int cols, int pitch) {
  __shared__ float sums[128];
  const float* row = x + static_cast<size_t>(blockIdx.x) * pitch;
  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += 128) sum += row[c];
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  const float mean = sums[0] / cols;
  for (int c = threadIdx.x; c < cols; c += 128) out[static_cast<size_t>(blockIdx.x) * pitch + c] = row[c] - mean;
}

extern "C" void launch(const float* x, float* out, int rows, int cols, int pitch) {
  Centre<<<rows, 128>>>(x, out, cols, pitch);
}
