// problem: problems/dot_product
// bug: threads beyond n leave their place in shared memory as it is, and the tree adds it up
// finding: uninitialised in Partial: that no thread of the block has written yet, shared array 's' (1024 bytes)
__device__ float partial[64];

__global__ void Partial(const float* a, const float* b, int n) {
  __shared__ float s[256];
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) s[threadIdx.x] = a[i] * b[i];
  __syncthreads();
#pragma unroll 1
  for (int d = 128; d > 0; d /= 2) {
    if (threadIdx.x < d) {
      const float upper = s[threadIdx.x + d];  // found
      s[threadIdx.x] += upper;
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) partial[blockIdx.x] = s[0];
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
