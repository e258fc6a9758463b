// problem: problems/dot_product
// bug: the last six steps of the tree rely on a warp's lanes running in step
// twin: honest/difference_volatile_tail
// finding: race in Dot: shared array 's' (1024 bytes), no __syncwarp() or barrier between
__global__ void Dot(const float* a, const float* b, float* out, int n) {
  __shared__ float s[256];
  const int t = threadIdx.x;
  float sum = 0;
  for (int i = t; i < n; i += 256) sum += a[i] * b[i];
  s[t] = sum;
  __syncthreads();
  for (int d = 128; d > 16; d /= 2) {
    if (t < d) s[t] += s[t + d];
    __syncthreads();
  }
  if (t < 32) {
#pragma unroll 1
    for (int d = 16; d > 0; d /= 2) s[t] += s[t + d];  // found
  }
  if (t == 0) out[0] = s[0];
}

extern "C" void launch(const float* a, const float* b, float* out, int n) { Dot<<<1, 256>>>(a, b, out, n); }
