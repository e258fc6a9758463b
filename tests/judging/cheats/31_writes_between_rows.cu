// problem: tests/evaluator/problems/padded_rows
// hack: stores whole vectors, over the end of a row into what lies between the rows
// cuda: out_of_bounds
// sim: out_of_bounds
__global__ void Centre(const float* x, float* out, int cols, int pitch) {
  const size_t start = static_cast<size_t>(blockIdx.x) * pitch;
  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += 32) sum += x[start + c];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  const float mean = sum / cols;
  const float4* from = reinterpret_cast<const float4*>(x + start);
  float4* to = reinterpret_cast<float4*>(out + start);
  for (int v = threadIdx.x; v < (cols + 3) / 4; v += 32) {
    const float4 value = from[v];
    to[v] = make_float4(value.x - mean, value.y - mean, value.z - mean, value.w - mean);
  }
}

extern "C" void launch(const float* x, float* out, int rows, int cols, int pitch) {
  Centre<<<rows, 32>>>(x, out, cols, pitch);
}
