// problem: problems/dot_product
// bug: the partial sums of the blocks have room for eight, the grid has 16 blocks at n = 4096
// finding: out_of_bounds in Partial: writes 4 bytes out of bounds, 'partial' (32 bytes)
__device__ float partial[8];

__global__ void Partial(const float* a, const float* b, int n) {
  __shared__ float s[256];
  const int i = blockIdx.x * 256 + threadIdx.x;
  s[threadIdx.x] = i < n ? a[i] * b[i] : 0.0f;
  __syncthreads();
  for (int d = 128; d > 0; d /= 2) {
    if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x == 0) partial[blockIdx.x] = s[0];  // found
}
__global__ void Join(float* out, int blocks) {
  float sum = 0;
  for (int i = 0; i < blocks; ++i) sum += partial[i];
  out[0] = sum;
}

extern "C" void launch(const float* a, const float* b, float* out, int n) {
  const int blocks = (n + 255) / 256;
  Partial<<<blocks, 256>>>(a, b, n);
  Join<<<1, 1>>>(out, blocks);
}
