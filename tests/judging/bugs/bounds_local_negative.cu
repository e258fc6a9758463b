// problem: problems/running_maximum
// bug: the ring of the last values is read at (k - 1) % 4, which is -1 for k = 0
// finding: out_of_bounds in Maximum: reads 4 bytes out of bounds, at byte -4 of the thread's local arrays (16 bytes)
__global__ void Maximum(const float* x, float* out, int rows, int cols) {
  const int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float ring[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
#pragma unroll 1
  for (int k = 0; k < cols; ++k) {
    const float before = ring[(k - 1) % 4];  // found
    ring[k % 4] = fmaxf(before, x[r * cols + k]);
    out[r * cols + k] = ring[k % 4];
  }
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  Maximum<<<(rows + 63) / 64, 64>>>(x, out, rows, cols);
}
