// problem: problems/dot_product
// bug: the size of dynamic shared memory is given in elements
// finding: out_of_bounds in Dot: writes 4 bytes out of bounds, past the end of shared array '(dynamic)' (256 bytes)
extern __shared__ float s[];

__global__ void Dot(const float* a, const float* b, float* out, int n) {
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += a[i] * b[i];
  s[threadIdx.x] = sum;  // found
  __syncthreads();
  for (int d = blockDim.x / 2; d > 0; d >>= 1) {
    if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[0] = s[0];
}

extern "C" void launch(const float* a, const float* b, float* out, int n) {
  const int threads = 256;
  Dot<<<1, threads, threads>>>(a, b, out, n);
}
