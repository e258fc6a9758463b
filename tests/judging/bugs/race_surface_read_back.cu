// problem: tests/evaluator/problems/row_sum
// bug: a texture reads what the same launch has written to the surface of its array, which its cache need not show
// twin: honest/row_sum_surface_two_launches
// finding: race in Sum: sees only what was written before the launch
__global__ void Sum(const float* x, cudaSurfaceObject_t written, cudaTextureObject_t read, float* out) {
  float sum = 0;
  for (int k = 0; k < 8; ++k) sum += x[(blockIdx.x * 8 + threadIdx.x) * 8 + k];
  surf2Dwrite(sum, written, static_cast<int>(threadIdx.x * sizeof(float)), static_cast<int>(blockIdx.x));  // found
  __syncthreads();
  if (threadIdx.x != 0) return;
  sum = 0;
  for (int k = 7; k >= 0; --k) sum += tex2D<float>(read, k + 0.5f, blockIdx.x + 0.5f);  // found
  out[blockIdx.x] = sum;
}

extern "C" void launch(const float* x, float* out, int rows) {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  cudaMallocArray(&resource.res.array.array, &format, 8, rows, cudaArraySurfaceLoadStore);
  cudaTextureDesc description = {};
  description.readMode = cudaReadModeElementType;
  cudaSurfaceObject_t written = 0;
  cudaTextureObject_t read = 0;
  cudaCreateSurfaceObject(&written, &resource);
  cudaCreateTextureObject(&read, &resource, &description, nullptr);
  Sum<<<rows, 8>>>(x, written, read, out);
  cudaDestroySurfaceObject(written);
  cudaDestroyTextureObject(read);
  cudaFreeArray(resource.res.array.array);
}
