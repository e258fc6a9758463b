__global__ void row_sum(const float* x, float* out, int rows) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float total = 0;
  for (int i = 0; i < 64; ++i) total += x[r * 64 + i];
  out[r] = total;
}

extern "C" void launch(const float* x, float* out, int rows) { row_sum<<<(rows + 127) / 128, 128>>>(x, out, rows); }
