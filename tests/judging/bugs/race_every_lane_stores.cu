// problem: tests/evaluator/problems/row_sum
// bug: only the first lane has the whole sum, but all of them store theirs
// twin: honest/row_sum_every_lane_stores
// finding: race in Sum: writes, 'out', by the same instruction, which leaves open whose value stays
__global__ void Sum(const float* x, float* out) {
  float sum = x[blockIdx.x * 64 + threadIdx.x] + x[blockIdx.x * 64 + 32 + threadIdx.x];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
  out[blockIdx.x] = sum;  // found
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 32>>>(x, out); }
