// problem: tests/evaluator/problems/row_sum
// bug: the tile begins one float behind the start of dynamic shared memory and is read as float4
// finding: misaligned in Sum: reads 16 bytes at an address, not a multiple of 16, shared array '(dynamic)'
__global__ void Sum(const float* x, float* out) {
  extern __shared__ float memory[];
  float* tile = memory + 1;
  const int t = threadIdx.x;
  tile[t] = x[blockIdx.x * 64 + t];
  __syncthreads();
  if (t < 16) {
    const float4 v = reinterpret_cast<const float4*>(tile)[t];  // found
    float sum = v.x + v.y + v.z + v.w;
    for (int d = 8; d > 0; d /= 2) sum += __shfl_down_sync(0xffffu, sum, d);
    if (t == 0) out[blockIdx.x] = sum;
  }
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 64, 65 * sizeof(float)>>>(x, out); }
