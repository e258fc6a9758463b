// problem: tests/evaluator/problems/row_sum
// style: many small blocks: a block of 32 threads a row; fixed-point sum by __reduce_add_sync
// cuda: correct
// sim: correct
// The values lie in [0, 1): 2^-25 fixed point keeps more than float32's rounding of a sum of 64, and each half of it fits.
__global__ void RowSum(const float* x, float* out) {
  const float* row = x + blockIdx.x * 64;
  unsigned high = 0, low = 0;
  for (int i = threadIdx.x; i < 64; i += 32) {
    const unsigned fixed = __float2uint_rn(row[i] * 33554432.0f);
    high += fixed >> 12;
    low += fixed & 4095u;
  }
  high = __reduce_add_sync(0xffffffffu, high);
  low = __reduce_add_sync(0xffffffffu, low);
  if (threadIdx.x == 0) {
    const double sum = (static_cast<double>(high) * 4096.0 + low) / 33554432.0;
    out[blockIdx.x] = static_cast<float>(sum);
  }
}

extern "C" void launch(const float* x, float* out, int rows) { RowSum<<<rows, 32>>>(x, out); }
