// problem: problems/gather_add
// style: x copied by cudaMemcpyAsync, then table rows added in place by a 2D grid
// cuda: correct
// sim: correct
__global__ void AddRows(const float* __restrict__ table, const int* __restrict__ index, float* out, int n, int width) {
  const int i = blockIdx.y * blockDim.y + threadIdx.y, d = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && d < width) out[static_cast<size_t>(i) * width + d] += table[static_cast<size_t>(index[i]) * width + d];
}

extern "C" void launch(const float* table, const int* index, const float* x, float* out, int n, int width) {
  cudaMemcpyAsync(out, x, sizeof(float) * n * width, cudaMemcpyDefault);
  AddRows<<<dim3((width + 31) / 32, (n + 7) / 8), dim3(32, 8)>>>(table, index, out, n, width);
}
