// Bias, GELU and residual: out[i] = clamp(gelu(gain * (x[i] + bias[i])) + residual[i], -8, 8) * mask[i].
// schedule: map

__device__ float stage_bias(float x, float bias) { return x + bias; }

__device__ float stage_gain(float value, float gain) { return value * gain; }

// The tanh form of GELU, written with one exponential.
__device__ float stage_gelu(float value) {
  const float inner = 1.5957691216f * (value + 0.044715f * value * value * value);
  return value - fdividef(value, expf(inner) + 1.0f);
}

__device__ float stage_residual(float value, float residual) { return value + residual; }

__device__ float stage_clamp(float value) { return fminf(fmaxf(value, -8.0f), 8.0f); }

__device__ float stage_mask(float value, float mask) { return value * mask; }

// kernels: a pass over the elements for each stage, an element a thread.
__global__ void bias_kernel(const float* x, const float* bias, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = stage_bias(x[i], bias[i]);
  }
}

__global__ void gain_kernel(float* out, float gain, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = stage_gain(out[i], gain);
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

__global__ void clamp_kernel(float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = stage_clamp(out[i]);
  }
}

__global__ void mask_kernel(const float* mask, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = stage_mask(out[i], mask[i]);
  }
}

extern "C" void launch(const float* x, const float* bias, const float* residual, const float* mask, float* out, float gain, int n) {
  const int blocks = (n + 255) / 256;
  bias_kernel<<<blocks, 256>>>(x, bias, out, n);
  gain_kernel<<<blocks, 256>>>(out, gain, n);
  gelu_kernel<<<blocks, 256>>>(out, n);
  residual_kernel<<<blocks, 256>>>(residual, out, n);
  clamp_kernel<<<blocks, 256>>>(out, n);
  mask_kernel<<<blocks, 256>>>(mask, out, n);
}
