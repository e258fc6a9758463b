__global__ void gather(const int* ids, const float* table, float* out, int n, int dim) {
  const size_t t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < (size_t)n * dim) {
    const size_t which = t / dim;
    const size_t column = t % dim;
    out[t] = table[(size_t)ids[which] * dim + column];
  }
}

extern "C" void launch(const int* ids, const float* table, float* out, int n, int dim) {
  constexpr int kBlock = 256;
  gather<<<(n * dim + kBlock - 1) / kBlock, kBlock>>>(ids, table, out, n, dim);
}
