// problem: tests/evaluator/problems/row_sum
// style: one launch writes the sums of 8 values to a surface, the next one reads them through a texture of the same array
// cuda: correct
// sim: correct
__global__ void Partial(const float* x, cudaSurfaceObject_t partial) {
  float sum = 0;
  for (int k = 0; k < 8; ++k) sum += x[(blockIdx.x * 8 + threadIdx.x) * 8 + k];
  surf2Dwrite(sum, partial, static_cast<int>(threadIdx.x * sizeof(float)), static_cast<int>(blockIdx.x));
}
__global__ void Join(cudaTextureObject_t partial, float* out, int rows) {
  const int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float sum = 0;
  for (int k = 0; k < 8; ++k) sum += tex2D<float>(partial, k + 0.5f, r + 0.5f);
  out[r] = sum;
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
  Partial<<<rows, 8>>>(x, written);
  Join<<<(rows + 127) / 128, 128>>>(read, out, rows);
  cudaStreamSynchronize(0);
  cudaDestroySurfaceObject(written);
  cudaDestroyTextureObject(read);
  cudaFreeArray(resource.res.array.array);
}
