// problem: problems/dot_product
// bug: what belongs into the second array is written behind the first
// finding: out_of_bounds in Dot: writes 4 bytes out of bounds, past the end of shared array 'left' (1024 bytes)
__global__ void Dot(const float* a, const float* b, float* out, int n) {
  __shared__ float left[256], right[256];
  const int t = threadIdx.x;
  float* both = left;
  float x = 0, y = 0;
  for (int i = t; i < n; i += 256) {
    x += a[i] * b[i];
    y += 0.0f;
  }
  both[t] = x;
  both[t + 256] = y;  // found
  right[t] = y;
  __syncthreads();
  for (int d = 128; d > 0; d /= 2) {
    if (t < d) {
      left[t] += left[t + d];
      right[t] += right[t + d];
    }
    __syncthreads();
  }
  if (t == 0) out[0] = left[0] + right[0];
}

extern "C" void launch(const float* a, const float* b, float* out, int n) { Dot<<<1, 256>>>(a, b, out, n); }
