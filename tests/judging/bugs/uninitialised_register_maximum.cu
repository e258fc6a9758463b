// problem: problems/row_peaks
// bug: the maximum starts with whatever its register holds; on a GPU often 0, so that it is correct at times
// finding: uninitialised in Peaks: stores a value that comes from a variable that was never set, of 'out'
__global__ void Peaks(const float* x, float* out, int rows, int cols) {
  const int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float peak;
  for (int c = 0; c < cols; ++c) peak = fmaxf(peak, fabsf(x[static_cast<size_t>(r) * cols + c]));  // found
  out[r] = peak;  // found
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  Peaks<<<(rows + 63) / 64, 64>>>(x, out, rows, cols);
}
