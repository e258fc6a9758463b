// problem: tests/evaluator/problems/padded_rows
// style: loads float4 beyond a row's last element, into the padding, and uses nothing of what it finds there
// cuda: correct
// sim: correct
__global__ void Centre(const float* x, float* out, int cols, int pitch) {
  const size_t start = static_cast<size_t>(blockIdx.x) * pitch;
  const float4* row = reinterpret_cast<const float4*>(x + start);
  const int lane = threadIdx.x, vectors = (cols + 3) / 4;
  float sum = 0.0f;
  for (int v = lane; v < vectors; v += 32) {
    const float4 value = row[v];
    const int left = cols - 4 * v;
    sum += value.x;
    if (left > 1) sum += value.y;
    if (left > 2) sum += value.z;
    if (left > 3) sum += value.w;
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  const float mean = sum / cols;
  for (int c = lane; c < cols; c += 32) out[start + c] = x[start + c] - mean;
}

extern "C" void launch(const float* x, float* out, int rows, int cols, int pitch) {
  Centre<<<rows, 32>>>(x, out, cols, pitch);
}
