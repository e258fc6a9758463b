// problem: tests/evaluator/problems/row_sum
// bug: half of the warp shuffles with a mask that names all of it
// finding: divergent in Sum: uses a warp operation whose mask names lanes 16-31
__global__ void Sum(const float* x, float* out) {
  __shared__ float tile[32];
  const int t = threadIdx.x;
  tile[t] = x[blockIdx.x * 64 + t] + x[blockIdx.x * 64 + t + 32];
  __syncwarp();
  if (t < 16) {
    float v = tile[t] + tile[t + 16];
#pragma unroll 1
    for (int d = 8; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);  // found
    if (t == 0) out[blockIdx.x] = v;
  }
  __syncthreads();  // found
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 32>>>(x, out); }
