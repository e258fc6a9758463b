// Embedding lookup: out[i] = scale * table[index[i]].
// layout: table[entries][width], index[n], out[n][width]
// schedule: gather

__device__ float finish(float total, float scale) { return total * scale; }

// kernels: a thread for each row.
__global__ void gather_kernel(const float* table, const int* index, float* out, int n, int width, float scale) {
  const int units = n;
  const int unit = blockIdx.x * blockDim.x + threadIdx.x;
  if (unit >= units) return;
  const int i = unit;
  for (int d = 0; d < width; ++d) {
    const float total = table[(size_t)index[i] * width + d];
    out[(size_t)i * width + d] = finish(total, scale);
  }
}

extern "C" void launch(const float* table, const int* index, float* out, int n, int width, float scale) {
  const int units = n;
  const int blocks = (units + 255) / 256;
  gather_kernel<<<blocks, 256>>>(table, index, out, n, width, scale);
}
