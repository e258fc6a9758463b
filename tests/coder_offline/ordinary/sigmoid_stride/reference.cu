__global__ void sigmoid(const float* __restrict__ x, float* __restrict__ out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
    float v = x[i];
    out[i] = 1.0f / (1.0f + expf(-v));
  }
}

extern "C" void launch(const float* x, float* out, int n) {
  sigmoid<<<512, 256>>>(x, out, n);
}
