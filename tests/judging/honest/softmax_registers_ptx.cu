// problem: problems/softmax_short
// style: a warp a row kept in registers, ex2.approx by inline PTX, a template of the row's length
// cuda: correct
// sim: correct
__device__ __forceinline__ float Exp2(float value) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
}

constexpr float kLog2E = 1.4426950408889634f;

template <int kParts>  // 32 * kParts >= cols
__global__ void Softmax(const float* __restrict__ x, float* __restrict__ out, int rows, int cols) {
  const int lane = threadIdx.x, row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;  // a whole warp
  float value[kParts];
  float maximum = -INFINITY;
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
    const int col = part * 32 + lane;
    value[part] = col < cols ? x[static_cast<size_t>(row) * cols + col] * kLog2E : -INFINITY;
    maximum = fmaxf(maximum, value[part]);
  }
#pragma unroll
  for (int mask = 16; mask; mask >>= 1) maximum = fmaxf(maximum, __shfl_xor_sync(0xffffffffu, maximum, mask));
  float sum = 0.0f;
#pragma unroll
  for (int part = 0; part < kParts; ++part) sum += value[part] = Exp2(value[part] - maximum);
#pragma unroll
  for (int mask = 16; mask; mask >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
  const float scale = __frcp_rn(sum);
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
    const int col = part * 32 + lane;
    if (col < cols) out[static_cast<size_t>(row) * cols + col] = value[part] * scale;
  }
}

__global__ void SoftmaxAnyLength(const float* x, float* out, int rows, int cols) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  x += static_cast<size_t>(row) * cols;
  out += static_cast<size_t>(row) * cols;
  float maximum = -INFINITY, sum = 0.0f;
  for (int col = 0; col < cols; ++col) maximum = fmaxf(maximum, x[col]);
  for (int col = 0; col < cols; ++col) sum += out[col] = expf(x[col] - maximum);
  for (int col = 0; col < cols; ++col) out[col] /= sum;
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  const dim3 block(32, 4), grid((rows + 3) / 4);
  switch ((cols + 31) / 32) {
    case 1: Softmax<1><<<grid, block>>>(x, out, rows, cols); break;
    case 2: Softmax<2><<<grid, block>>>(x, out, rows, cols); break;
    case 3:
    case 4: Softmax<4><<<grid, block>>>(x, out, rows, cols); break;
    default: SoftmaxAnyLength<<<(rows + 63) / 64, 64>>>(x, out, rows, cols);
  }
}
