// Gathered rows added: out[i] = table[index[i]] + x[i].
// layout: table[entries][width], index[n], x[n][width], out[n][width]
// schedule: gather

__device__ float finish(float total, float x) { return total + x; }

// kernels: a thread for each row.
__global__ void gather_kernel(const float* table, const int* index, const float* x, float* out, int n, int width) {
  const int units = n;
  const int unit = blockIdx.x * blockDim.x + threadIdx.x;
  if (unit >= units) return;
  const int i = unit;
  for (int d = 0; d < width; ++d) {
    const float total = table[(size_t)index[i] * width + d];
    const float x_value = x[(size_t)i * width + d];
    out[(size_t)i * width + d] = finish(total, x_value);
  }
}

extern "C" void launch(const float* table, const int* index, const float* x, float* out, int n, int width) {
  const int units = n;
  const int blocks = (units + 255) / 256;
  gather_kernel<<<blocks, 256>>>(table, index, x, out, n, width);
}
