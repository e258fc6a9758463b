// Embedding bag: out[i] = sum over j of table[index[i][j]].
// layout: table[entries][width], index[n][bag], out[n][width]
// schedule: gather coalesce vectorize=4

__device__ float finish(float total) { return total; }

// kernels: a thread for each element, 4 elements at a time.
__global__ void gather_kernel(const float* table, const int* index, float* out, int n, int bag, int width) {
  const int units_per_row = (width + 3) / 4;
  const int units = n * units_per_row;
  const int unit = blockIdx.x * blockDim.x + threadIdx.x;
  if (unit >= units) return;
  const int i = unit / units_per_row;
  const int d = unit % units_per_row * 4;
  if (width % 4 == 0) {
    float4 total = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int j = 0; j < bag; ++j) {
      const float4 loaded = *reinterpret_cast<const float4*>(table + (size_t)index[(size_t)i * bag + j] * width + d);
      total.x += loaded.x;
      total.y += loaded.y;
      total.z += loaded.z;
      total.w += loaded.w;
    }
    *reinterpret_cast<float4*>(out + (size_t)i * width + d) = make_float4(finish(total.x), finish(total.y), finish(total.z), finish(total.w));
  } else {
    const int first = d;
    for (int d = first; d < min(first + 4, width); ++d) {
      float total = 0.0f;
      for (int j = 0; j < bag; ++j) {
        const float loaded = table[(size_t)index[(size_t)i * bag + j] * width + d];
        total += loaded;
      }
      out[(size_t)i * width + d] = finish(total);
    }
  }
}

extern "C" void launch(const float* table, const int* index, float* out, int n, int bag, int width) {
  const int units_per_row = (width + 3) / 4;
  const int units = n * units_per_row;
  const int blocks = (units + 255) / 256;
  gather_kernel<<<blocks, 256>>>(table, index, out, n, bag, width);
}
