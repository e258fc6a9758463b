// problem: tests/evaluator/problems/row_sum
// bug: the x coordinate of a surface counts bytes, not elements
// twin: honest/row_sum_surface_two_launches
// finding: misaligned in Partial: writes 4 bytes at an address that is not a multiple of 4, a CUDA array
__global__ void Partial(const float* x, cudaSurfaceObject_t partial) {
  float sum = 0;
  for (int k = 0; k < 8; ++k) sum += x[(blockIdx.x * 8 + threadIdx.x) * 8 + k];
  surf2Dwrite(sum, partial, static_cast<int>(threadIdx.x), static_cast<int>(blockIdx.x));  // found
}

extern "C" void launch(const float* x, float* out, int rows) {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  cudaMallocArray(&resource.res.array.array, &format, 8, rows, cudaArraySurfaceLoadStore);
  cudaSurfaceObject_t written = 0;
  cudaCreateSurfaceObject(&written, &resource);
  Partial<<<rows, 8>>>(x, written);
  cudaMemcpy2DFromArray(out, sizeof(float), resource.res.array.array, 0, 0, sizeof(float), rows,
                        cudaMemcpyDeviceToDevice);
  cudaDestroySurfaceObject(written);
  cudaFreeArray(resource.res.array.array);
}
