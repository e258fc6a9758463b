// problem: problems/prefix_sum
// bug: a step of the scan reads and writes one array with one barrier: the read may come after a neighbour's write
// twin: honest/prefix_sum_block_scan
// finding: race in Scan: shared array 's' (4096 bytes), barrier between
__global__ void Scan(const float* x, float* out, int cols) {
  __shared__ float s[1024];
  const size_t row = static_cast<size_t>(blockIdx.x) * cols;
  float before = 0;
  for (int start = 0; start < cols; start += 1024) {
    const int c = start + threadIdx.x;
    s[threadIdx.x] = c < cols ? x[row + c] : 0.0f;
#pragma unroll 1
    for (int d = 1; d < 1024; d *= 2) {
      __syncthreads();
      if (threadIdx.x >= d) s[threadIdx.x] += s[threadIdx.x - d];  // found
    }
    __syncthreads();
    if (c < cols) out[row + c] = before + s[threadIdx.x];
    before += s[1023];
    __syncthreads();
  }
}

extern "C" void launch(const float* x, float* out, int rows, int cols) { Scan<<<rows, 1024>>>(x, out, cols); }
