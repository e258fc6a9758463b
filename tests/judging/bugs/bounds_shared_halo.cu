// problem: tests/evaluator/problems/row_sum
// bug: the tile has no room for the halo that its readers want: the last thread reads behind it
// finding: out_of_bounds in Smooth: reads, 4 bytes past the end of shared array 'tile' (256 bytes)
__global__ void Smooth(const float* x, float* out) {
  __shared__ float tile[64];
  __shared__ float sums[2];
  const int t = threadIdx.x;
  tile[t] = x[blockIdx.x * 64 + t];
  __syncthreads();
  float v = 0.5f * tile[t] + 0.5f * tile[t + 1];  // found
  if (t == 0) v += 0.5f * tile[0];
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
  if (t % 32 == 0) sums[t / 32] = v;
  __syncthreads();
  if (t == 0) out[blockIdx.x] = sums[0] + sums[1];
}

extern "C" void launch(const float* x, float* out, int rows) { Smooth<<<rows, 64>>>(x, out); }
