// problem: tests/evaluator/problems/row_sum
// style: two buffers in turn: one warp fills the one, another adds up the other
// cuda: correct
// sim: correct
__global__ void Sum(const float* x, float* out) {
  __shared__ float buffer[2][32];
  const float* row = x + blockIdx.x * 64;
  const int t = threadIdx.x;  // 64 threads: the first warp loads, the second adds up
  if (t < 32) buffer[0][t] = t < 16 ? row[t] : 0.0f;
  if (t < 32) buffer[1][t] = 0.0f;
  __syncthreads();
  float sum = 0;
#pragma unroll 1
  for (int part = 0; part < 4; ++part) {
    if (t < 16 && part < 3) {
      buffer[(part + 1) & 1][t] = row[16 * part + 16 + t];
    }
    if (t == 32) {
#pragma unroll 1
      for (int k = 0; k < 16; ++k) sum += buffer[part & 1][k];
    }
    __syncthreads();
  }
  if (t == 32) out[blockIdx.x] = sum;
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 64>>>(x, out); }
