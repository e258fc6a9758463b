__global__ void first(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = sqrtf(fabsf(in[i]));
  }
}

/* in and out are one array here: out[i] /= d[i] */
__global__ void second(const float* in, const float* d, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    const float value = in[i];
    const float by = d[i];
    out[i] = value / by;
  }
}

extern "C" void launch(const float* x, const float* d, float* out, int n) {
  const int threads = 256;
  const int blocks = (n + threads - 1) / threads;
  first<<<blocks, threads>>>(x, out, n);
  second<<<blocks, threads>>>(out, d, out, n);
}
