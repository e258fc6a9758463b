// Running maximum of the magnitudes of each row.
// layout: x[rows][cols], out[rows][cols]
// schedule: scan

__device__ float load(float x) { return fabsf(x); }
__device__ float identity() { return 0.0f; }
__device__ float combine(float a, float b) { return fmaxf(a, b); }

// kernels: a thread walks its row.
__global__ void scan_kernel(const float* x, float* out, int rows, int cols) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float* x_row = x + (size_t)row * cols;
  float* out_row = out + (size_t)row * cols;
  float before = identity();
  for (int col = 0; col < cols; ++col) {
    before = combine(before, load(x_row[col]));
    out_row[col] = before;
  }
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  scan_kernel<<<(rows + 255) / 256, 256>>>(x, out, rows, cols);
}
