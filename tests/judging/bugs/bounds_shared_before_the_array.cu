// problem: problems/prefix_sum
// bug: the scan's left neighbour is read for thread 0 too
// finding: out_of_bounds in Scan: reads 4 bytes out of bounds, bytes before shared array 's' (4224 bytes)
__global__ void Scan(const float* x, float* out, int cols) {
  __shared__ float s[1056];
  const float* row = x + static_cast<size_t>(blockIdx.x) * cols;
  float* to = out + static_cast<size_t>(blockIdx.x) * cols;
  float before = 0;
  for (int start = 0; start < cols; start += 1024) {
    const int i = start + threadIdx.x;
    float v = i < cols ? row[i] : 0.0f;
    s[threadIdx.x] = v;
    __syncthreads();
    for (int d = 1; d < 1024; d *= 2) {
      const float left = s[static_cast<int>(threadIdx.x) - d];  // found
      __syncthreads();
      if (threadIdx.x >= d) v += left;
      s[threadIdx.x] = v;
      __syncthreads();
    }
    if (i < cols) to[i] = before + v;
    before += s[1023];
    __syncthreads();
  }
}

extern "C" void launch(const float* x, float* out, int rows, int cols) { Scan<<<rows, 1024>>>(x, out, cols); }
