// SwiGLU: out[i] = residual[i] + max(-4, scale * up[i] * gate[i] * sigmoid(gate[i])).
// schedule: map

__device__ float stage_silu(float gate) { return fdividef(gate, 1.0f + expf(-gate)); }

__device__ float stage_up(float value, float up) { return value * up; }

__device__ float stage_scale(float value, float scale) { return value * scale; }

__device__ float stage_floor(float value) { return fmaxf(value, -4.0f); }

__device__ float stage_residual(float value, float residual) { return value + residual; }

// kernels: a pass over the elements for each stage, an element a thread.
__global__ void silu_kernel(const float* gate, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = stage_silu(gate[i]);
  }
}

__global__ void up_kernel(const float* up, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = stage_up(out[i], up[i]);
  }
}

__global__ void scale_kernel(float* out, float scale, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = stage_scale(out[i], scale);
  }
}

__global__ void floor_kernel(float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = stage_floor(out[i]);
  }
}

__global__ void residual_kernel(const float* residual, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = stage_residual(out[i], residual[i]);
  }
}

extern "C" void launch(const float* gate, const float* up, const float* residual, float* out, float scale, int n) {
  const int blocks = (n + 255) / 256;
  silu_kernel<<<blocks, 256>>>(gate, out, n);
  up_kernel<<<blocks, 256>>>(up, out, n);
  scale_kernel<<<blocks, 256>>>(out, scale, n);
  floor_kernel<<<blocks, 256>>>(out, n);
  residual_kernel<<<blocks, 256>>>(residual, out, n);
}
