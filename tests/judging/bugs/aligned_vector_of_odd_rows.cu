// problem: problems/row_norms
// bug: rows of 33 columns are read as float4, though only every fourth row begins at a multiple of 16 bytes
// finding: misaligned in Norms: reads 16 bytes at an address that is not a multiple of 16, 'x' (8580 bytes)
__global__ void Norms(const float* x, float* out, int rows, int cols) {
  const int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  const float* row = x + static_cast<size_t>(r) * cols;
  float sum = 0;
  int c = 0;
  for (; c + 4 <= cols && (cols % 4 == 0 || cols < 64); c += 4) {
    const float4 v = *reinterpret_cast<const float4*>(row + c);  // found
    sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  }
  for (; c < cols; ++c) sum += row[c] * row[c];
  out[r] = sqrtf(sum);
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  Norms<<<(rows + 63) / 64, 64>>>(x, out, rows, cols);
}
