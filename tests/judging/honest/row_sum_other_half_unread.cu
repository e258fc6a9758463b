// problem: tests/evaluator/problems/row_sum
// style: a warp reads the other's half only if a flag says so; nvcc reads it ahead of the flag and drops the value
// cuda: correct
// sim: correct
__global__ void Sum(const float* __restrict__ x, float* __restrict__ out, int both) {
  __shared__ float s[64];
  const int t = threadIdx.x;
  s[t] = x[blockIdx.x * 64 + t];
  __syncthreads();
  if (t < 32) {
    float a = s[t];
    if (both) a += s[40];
    a += __shfl_xor_sync(0xffffffffu, a, 16);
    a += __shfl_xor_sync(0xffffffffu, a, 8);
    a += __shfl_xor_sync(0xffffffffu, a, 4);
    a += __shfl_xor_sync(0xffffffffu, a, 2);
    a += __shfl_xor_sync(0xffffffffu, a, 1);
    if (t == 0) s[0] = a;
  } else {
    s[t] *= 2;
  }
  __syncthreads();
  if (t != 0) return;
  float sum = s[0];
  for (int i = 32; i < 64; ++i) sum += s[i] / 2;
  out[blockIdx.x] = sum;
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 64>>>(x, out, 0); }
