// problem: tests/evaluator/problems/row_sum
// style: x copied to a CUDA array, read through a 2D texture with normalized coordinates
// cuda: correct
// sim: correct
__global__ void Sum(cudaTextureObject_t x, float* out, int rows) {
  const int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float sum = 0;
  for (int k = 0; k < 64; ++k) sum += tex2D<float>(x, (k + 0.5f) / 64, (r + 0.5f) / rows);
  out[r] = sum;
}

extern "C" void launch(const float* x, float* out, int rows) {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array = nullptr;
  cudaMallocArray(&array, &format, 64, rows);
  cudaMemcpy2DToArrayAsync(array, 0, 0, x, 64 * sizeof(float), 64 * sizeof(float), rows, cudaMemcpyDeviceToDevice, 0);
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc description = {};
  description.addressMode[0] = description.addressMode[1] = cudaAddressModeClamp;
  description.filterMode = cudaFilterModePoint;
  description.readMode = cudaReadModeElementType;
  description.normalizedCoords = 1;
  cudaTextureObject_t texture = 0;
  cudaCreateTextureObject(&texture, &resource, &description, nullptr);
  Sum<<<(rows + 127) / 128, 128>>>(texture, out, rows);
  cudaStreamSynchronize(0);
  cudaDestroyTextureObject(texture);
  cudaFreeArray(array);
}
