// problem: tests/evaluator/problems/row_stencil
// bug: left neighbours are handed on in place, though another block's thread may have replaced them already
// finding: race in Shift: 'scratch' (16384 bytes), no synchronisation of the blocks
__device__ float scratch[4096];

__global__ void Fill(const float* x, int count) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < count) scratch[i] = x[i];
}
__global__ void Shift(int cols, int count) {
  const int i = blockIdx.x * 32 + threadIdx.x;
  if (i >= count) return;
  const float left = i % cols > 0 ? scratch[i - 1] : 0.0f;  // found
  __syncwarp();
  scratch[i] = left;  // found
}
__global__ void Add(const float* x, float* out, int cols, int count) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < count) out[i] = scratch[i] + (i % cols + 1 < cols ? x[i + 1] : 0.0f);
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  const int rows_at_once = 4096 / cols;
  for (int r = 0; r < rows; r += rows_at_once) {
    const int count = min(rows_at_once, rows - r) * cols;
    Fill<<<(count + 127) / 128, 128>>>(x + r * cols, count);
    Shift<<<(count + 31) / 32, 32>>>(cols, count);
    Add<<<(count + 127) / 128, 128>>>(x + r * cols, out + r * cols, cols, count);
  }
}
