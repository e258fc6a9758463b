// problem: problems/row_peaks
// style: magnitudes compared as integers: __reduce_max_sync and atomicMax on the bits, several blocks a row (2D grid)
// cuda: correct
// sim: correct
__global__ void Peaks(const float* __restrict__ x, unsigned* peaks, int cols) {
  const float* row = x + static_cast<size_t>(blockIdx.y) * cols;
  unsigned peak = 0;
  for (int col = blockIdx.x * blockDim.x + threadIdx.x; col < cols; col += gridDim.x * blockDim.x) {
    peak = max(peak, __float_as_uint(row[col]) & 0x7fffffffu);
  }
  peak = __reduce_max_sync(0xffffffffu, peak);
  if ((threadIdx.x & 31) == 0) atomicMax(&peaks[blockIdx.y], peak);
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  // Zero bits are zero, the least magnitude.
  cudaMemsetAsync(out, 0, sizeof(float) * rows);
  const dim3 grid(min((cols + 1023) / 1024, 4), rows);
  Peaks<<<grid, 256>>>(x, reinterpret_cast<unsigned*>(out), cols);
}
