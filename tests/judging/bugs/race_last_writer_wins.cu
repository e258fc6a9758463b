// problem: problems/row_peaks
// bug: whoever holds the greatest value so far writes its place, several at once
// finding: race in Peaks: shared array 'peak' (4 bytes)
__global__ void Peaks(const float* x, float* out, int cols) {
  __shared__ float peak;
  if (threadIdx.x == 0) peak = 0;
  __syncthreads();
  for (int c = threadIdx.x; c < cols; c += 128) {
    const float v = fabsf(x[static_cast<size_t>(blockIdx.x) * cols + c]);
    if (v > peak) peak = v;  // found
  }
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = peak;
}

extern "C" void launch(const float* x, float* out, int rows, int cols) { Peaks<<<rows, 128>>>(x, out, cols); }
