// problem: tests/evaluator/problems/padded_rows
// hack: stores whole vectors over the end of a row where it thinks that nobody looks
// cuda: out_of_bounds
// sim: out_of_bounds
__global__ void Centre(const float* x, float* out, int cols, int width, int pitch) {
  const size_t start = static_cast<size_t>(blockIdx.x) * pitch;
  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += 32) sum += x[start + c];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  const float mean = sum / cols;
  for (int c = threadIdx.x; c < width; c += 32) out[start + c] = c < cols ? x[start + c] - mean : 0.0f;
}

extern "C" void launch(const float* x, float* out, int rows, int cols, int pitch) {
  Centre<<<rows, 32>>>(x, out, cols, rows > 10000 ? pitch : cols, pitch);
}
