// problem: problems/window_frames
// style: an early exit of whole blocks, the row loop unrolled by a template, coefficients held in registers
// cuda: correct
// sim: correct
template <int kRows>
__global__ void Window(const float* __restrict__ x, float* __restrict__ out, int rows, int cols, float power) {
  const int first = blockIdx.y * kRows;
  if (first >= rows) return;
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= cols) return;
  const float phase = fdividef(static_cast<float>(column), static_cast<float>(cols));
  const float taper = expf(-power * powf(fabsf(fmaf(2.0f, phase, -1.0f)), power));
  const float coefficient = taper * (0.5f - 0.5f * cosf(6.2831853072f * phase));
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (first + r >= rows) break;
    const size_t i = static_cast<size_t>(first + r) * cols + column;
    out[i] = x[i] * coefficient;
  }
}

extern "C" void launch(const float* x, float* out, int rows, int cols, float power) {
  // A grid of round numbers: its last blocks may have nothing to do.
  const int groups = ((rows + 15) / 16 + 3) / 4 * 4;
  Window<16><<<dim3((cols + 127) / 128, groups), 128>>>(x, out, rows, cols, power);
}
