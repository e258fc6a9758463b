// problem: tests/evaluator/problems/row_sum
// bug: floats are laid behind 67 flags of a byte each in dynamic shared memory
// finding: misaligned in Sum: writes 4 bytes at an address that is not a multiple of 4, shared array '(dynamic)'
__global__ void Sum(const float* x, float* out) {
  extern __shared__ unsigned char memory[];
  unsigned char* flags = memory;
  float* values = reinterpret_cast<float*>(memory + 67);
  const int t = threadIdx.x;
  flags[t] = 1;
  values[t] = x[blockIdx.x * 64 + t];  // found
  __syncthreads();
  if (t == 0) {
    float sum = 0;
    for (int k = 0; k < 64; ++k) sum += flags[k] != 0 ? values[k] : 0.0f;
    out[blockIdx.x] = sum;
  }
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 64, 67 + 64 * 4 + 1>>>(x, out); }
