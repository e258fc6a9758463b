// problem: tests/evaluator/problems/row_sum
// bug: the size of the texture's memory counts a row that x does not have, and the loop reads one column too many
// finding: out_of_bounds in Sum: reads 4 bytes out of bounds, past the end of
__global__ void Sum(cudaTextureObject_t x, float* out, int rows) {
  const int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  float sum = 0;
  for (int k = 0; k <= 64; ++k) sum += tex1Dfetch<float>(x, r * 64 + k);  // found
  out[r] = sum;
}

extern "C" void launch(const float* x, float* out, int rows) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = const_cast<float*>(x);
  resource.res.linear.desc = cudaCreateChannelDesc<float>();
  resource.res.linear.sizeInBytes = (rows + 1) * 64 * sizeof(float);
  cudaTextureDesc description = {};
  description.readMode = cudaReadModeElementType;
  cudaTextureObject_t texture = 0;
  cudaCreateTextureObject(&texture, &resource, &description, nullptr);
  Sum<<<(rows + 127) / 128, 128>>>(texture, out, rows);
  cudaDestroyTextureObject(texture);
}
