// Mean of rows: a plain kernel an operator, generated from PyTorch's trace.

// The sum of one value a thread, over a block of 256 threads; every thread gets it.
__device__ float block_sum(float value) {
  __shared__ float shared[256];
  __syncthreads();
  shared[threadIdx.x] = value;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) shared[threadIdx.x] = shared[threadIdx.x] + shared[threadIdx.x + half];
    __syncthreads();
  }
  return shared[0];
}

// The mean.
__global__ void mean_kernel(const float* in, float* out, int cols) {
  const int row = blockIdx.x;
  const int i0 = row;
  float sum = 0.0f;
  for (int j = threadIdx.x; j < cols; j += blockDim.x) {
    const int i1 = j;
    sum += in[i0*cols + i1];
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) out[row] = sum / (float)(cols);
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  mean_kernel<<<(unsigned)(rows), 256>>>(x, out, cols);
}
