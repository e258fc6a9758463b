// Bias, GELU and residual: out[i] = clamp(gelu(gain * (x[i] + bias[i])) + residual[i], -8, 8) * mask[i].
// schedule: map fast fuse vectorize=4

__device__ float stage_bias(float x, float bias) { return x + bias; }

__device__ float stage_gain(float value, float gain) { return value * gain; }

// The tanh form of GELU, written with one exponential.
__device__ float stage_gelu(float value) {
  const float inner = 1.5957691216f * (value + 0.044715f * value * value * value);
  return value - __fdividef(value, __expf(inner) + 1.0f);
}

__device__ float stage_residual(float value, float residual) { return value + residual; }

__device__ float stage_clamp(float value) { return fminf(fmaxf(value, -8.0f), 8.0f); }

__device__ float stage_mask(float value, float mask) { return value * mask; }

// kernels: one pass over the elements, an element a thread, 4 elements at a time.
__global__ void fused_kernel(const float* x, const float* bias, const float* residual, const float* mask, float* out, float gain, int n) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int count = n / 4;
  const int i = thread;
  if (i < count) {
    const float4 x_vector = reinterpret_cast<const float4*>(x)[i];
    const float4 bias_vector = reinterpret_cast<const float4*>(bias)[i];
    const float4 residual_vector = reinterpret_cast<const float4*>(residual)[i];
    const float4 mask_vector = reinterpret_cast<const float4*>(mask)[i];
    float4 out_vector;
    out_vector.x = stage_mask(stage_clamp(stage_residual(stage_gelu(stage_gain(stage_bias(x_vector.x, bias_vector.x), gain)), residual_vector.x)), mask_vector.x);
    out_vector.y = stage_mask(stage_clamp(stage_residual(stage_gelu(stage_gain(stage_bias(x_vector.y, bias_vector.y), gain)), residual_vector.y)), mask_vector.y);
    out_vector.z = stage_mask(stage_clamp(stage_residual(stage_gelu(stage_gain(stage_bias(x_vector.z, bias_vector.z), gain)), residual_vector.z)), mask_vector.z);
    out_vector.w = stage_mask(stage_clamp(stage_residual(stage_gelu(stage_gain(stage_bias(x_vector.w, bias_vector.w), gain)), residual_vector.w)), mask_vector.w);
    reinterpret_cast<float4*>(out)[i] = out_vector;
  }
  if (thread < n - count * 4) {
    const int i = count * 4 + thread;  // the last elements, one a thread
    out[i] = stage_mask(stage_clamp(stage_residual(stage_gelu(stage_gain(stage_bias(x[i], bias[i]), gain)), residual[i])), mask[i]);
  }
}

extern "C" void launch(const float* x, const float* bias, const float* residual, const float* mask, float* out, float gain, int n) {
  const int blocks = (n + 1023) / 1024;
  fused_kernel<<<blocks, 256>>>(x, bias, residual, mask, out, gain, n);
}
