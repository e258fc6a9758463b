// problem: problems/dot_product
// bug: the tail of the older samples: volatile alone, which has not been enough since Volta
// twin: honest/difference_volatile_tail
// finding: race in Dot: shared array 's' (512 bytes), no __syncwarp() or barrier between
__device__ void Tail(volatile float* s, int t) {
#pragma unroll 1
  for (int d = 32; d > 0; d /= 2) s[t] = s[t] + s[t + d];  // found
}

__global__ void Dot(const float* a, const float* b, float* out, int n) {
  __shared__ float s[128];
  const int t = threadIdx.x;
  float sum = 0;
  for (int i = t; i < n; i += 128) sum += a[i] * b[i];
  s[t] = sum;
  __syncthreads();
  if (t < 64) s[t] += s[t + 64];
  __syncthreads();
  if (t < 32) Tail(s, t);
  if (t == 0) out[0] = s[0];
}

extern "C" void launch(const float* a, const float* b, float* out, int n) { Dot<<<1, 128>>>(a, b, out, n); }
