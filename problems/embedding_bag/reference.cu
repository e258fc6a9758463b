// Embedding bag: out[i] = sum over j of table[index[i][j]].
// layout: table[entries][width], index[n][bag], out[n][width]
// schedule: gather

__device__ float finish(float total) { return total; }

// kernels: a thread for each row.
__global__ void gather_kernel(const float* table, const int* index, float* out, int n, int bag, int width) {
  const int units = n;
  const int unit = blockIdx.x * blockDim.x + threadIdx.x;
  if (unit >= units) return;
  const int i = unit;
  for (int d = 0; d < width; ++d) {
    float total = 0.0f;
    for (int j = 0; j < bag; ++j) {
      const float loaded = table[(size_t)index[(size_t)i * bag + j] * width + d];
      total += loaded;
    }
    out[(size_t)i * width + d] = finish(total);
  }
}

extern "C" void launch(const float* table, const int* index, float* out, int n, int bag, int width) {
  const int units = n;
  const int blocks = (units + 255) / 256;
  gather_kernel<<<blocks, 256>>>(table, index, out, n, bag, width);
}
