// Symmetric product: a plain kernel an operator, generated from PyTorch's trace.

// A block of 256 threads for every so many elements.
static unsigned blocks_for(long long elements) { return (unsigned)((elements + 255) / 256); }

// A matrix product: a thread an element of the result.
__global__ void matmul_kernel(const float* in0, const float* in1, float* out, int N) {
  const int i = blockIdx.x * (int)blockDim.x + threadIdx.x;
  if (i >= N*N) return;
  int rest_i = i;
  const int i1 = rest_i % N;
  rest_i /= N;
  const int i0 = rest_i;
  float sum = 0.0f;
  for (int k = 0; k < N; ++k) sum += in0[i0*N + k] * in1[k*N + i1];
  out[i] = sum;
}

extern "C" void launch(const float* A, const float* B, float* output, int N) {
  matmul_kernel<<<blocks_for(1LL*N*N), 256>>>(A, B, output, N);
}
