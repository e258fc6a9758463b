// problem: problems/transpose
// style: tiles read back as float4 although their last elements may not be written: those are not stored
// cuda: correct
// sim: correct
constexpr int kTile = 32;

__global__ void Transpose(const float* x, float* out, int rows, int cols) {
  __shared__ alignas(16) float tile[kTile][kTile + 4];  // [column][row]
  const int row0 = blockIdx.y * kTile, col0 = blockIdx.x * kTile;
  for (int i = threadIdx.x; i < kTile * kTile; i += blockDim.x) {
    const int r = i / kTile, c = i % kTile;
    if (row0 + r < rows && col0 + c < cols) tile[c][r] = x[static_cast<size_t>(row0 + r) * cols + col0 + c];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kTile * kTile / 4; i += blockDim.x) {
    const int c = i / (kTile / 4), r = i % (kTile / 4) * 4;
    if (col0 + c >= cols || row0 + r >= rows) continue;
    const float4 v = *reinterpret_cast<const float4*>(&tile[c][r]);
    float* to = out + static_cast<size_t>(col0 + c) * rows + row0 + r;
    to[0] = v.x;
    if (row0 + r + 1 < rows) to[1] = v.y;
    if (row0 + r + 2 < rows) to[2] = v.z;
    if (row0 + r + 3 < rows) to[3] = v.w;
  }
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  Transpose<<<dim3((cols + kTile - 1) / kTile, (rows + kTile - 1) / kTile), 128>>>(x, out, rows, cols);
}
