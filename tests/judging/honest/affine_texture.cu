// problem: tests/evaluator/problems/affine
// style: x read through a texture object made for the call (at most 2^27 elements each), destroyed when the work is done
// cuda: correct
// sim: correct
__global__ void Affine(cudaTextureObject_t x, const float* y, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * tex1Dfetch<float>(x, i) + y[i];
}

extern "C" void launch(const float* x, const float* y, float* out, int n) {
  constexpr int kMost = 1 << 27;
  for (int first = 0; first < n; first += kMost) {
    const int count = n - first < kMost ? n - first : kMost;
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = const_cast<float*>(x + first);
    resource.res.linear.desc = cudaCreateChannelDesc<float>();
    resource.res.linear.sizeInBytes = sizeof(float) * count;
    cudaTextureDesc description = {};
    description.readMode = cudaReadModeElementType;
    cudaTextureObject_t texture = 0;
    cudaCreateTextureObject(&texture, &resource, &description, nullptr);
    Affine<<<(count + 255) / 256, 256>>>(texture, y + first, out + first, count);
    cudaStreamSynchronize(0);
    cudaDestroyTextureObject(texture);
  }
}
