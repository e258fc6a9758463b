// problem: problems/running_maximum
// bug: the ring of the last four values is read at all four places from the first column on
// finding: uninitialised in Maximum: that the thread has not written, of the thread's local arrays (16 bytes)
__global__ void Maximum(const float* x, float* out, int rows, int cols) {
  const int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float ring[4];
#pragma unroll 1
  for (int k = 0; k < cols; ++k) {
    ring[k & 3] = x[r * cols + k];
    float most = ring[k & 3];
#pragma unroll 1
    for (int j = 1; j < 4; ++j) most = fmaxf(most, ring[(k + j) & 3]);  // found
    if (k > 0) most = fmaxf(most, out[r * cols + k - 1]);
    out[r * cols + k] = most;
  }
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  Maximum<<<(rows + 63) / 64, 64>>>(x, out, rows, cols);
}
