// Bias, GELU and residual: out[i] = gelu(x[i] + bias[i]) + residual[i].
// schedule: map

__device__ float stage_bias(float x, float bias) { return x + bias; }

// The tanh form of GELU, written with one exponential.
__device__ float stage_gelu(float value) {
  const float inner = 1.5957691216f * (value + 0.044715f * value * value * value);
  return value - fdividef(value, expf(inner) + 1.0f);
}

__device__ float stage_residual(float value, float residual) { return value + residual; }

// kernels: a pass over the elements for each stage, an element a thread.
__global__ void bias_kernel(const float* x, const float* bias, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = stage_bias(x[i], bias[i]);
  }
}

__global__ void gelu_kernel(float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = stage_gelu(out[i]);
  }
}

__global__ void residual_kernel(const float* residual, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = stage_residual(out[i], residual[i]);
  }
}

extern "C" void launch(const float* x, const float* bias, const float* residual, float* out, int n) {
  const int blocks = (n + 255) / 256;
  bias_kernel<<<blocks, 256>>>(x, bias, out, n);
  gelu_kernel<<<blocks, 256>>>(out, n);
  residual_kernel<<<blocks, 256>>>(residual, out, n);
}
