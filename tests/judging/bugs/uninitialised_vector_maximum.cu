// problem: problems/row_peaks
// bug: the last vector of a row is read whole; what lies behind its end counts, though zeros and NaNs would not show
// finding: uninitialised in Peaks: reads 4 bytes that no thread of the block has written yet, shared array 'tile' (2048 bytes)
__global__ void Peaks(const float* x, float* out, int cols) {
  __shared__ alignas(16) float tile[512];
  __shared__ float peaks[128];
  const float* row = x + static_cast<size_t>(blockIdx.x) * cols;
  float peak = 0;
  for (int start = 0; start < cols; start += 512) {
    const int count = min(512, cols - start);
    for (int i = threadIdx.x; i < count; i += 128) tile[i] = row[start + i];
    __syncthreads();
    if (4 * threadIdx.x < count) {
      const float4 v = reinterpret_cast<const float4*>(tile)[threadIdx.x];  // found
      peak = fmaxf(peak, fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))));
    }
    __syncthreads();
  }
  peaks[threadIdx.x] = peak;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 1; i < 128; ++i) peak = fmaxf(peak, peaks[i]);
  out[blockIdx.x] = peak;
}

extern "C" void launch(const float* x, float* out, int rows, int cols) { Peaks<<<rows, 128>>>(x, out, cols); }
