// Softmax of each row: out[r][c] = exp(x[r][c] - max) / sum.
// layout: x[rows][cols], out[rows][cols]
// schedule: softmax cooperate one_pass shuffle vectorize=4

__device__ float load(float x) { return x; }
__device__ float finish(float value, float maximum, float sum) { return fdividef(expf(value - maximum), sum); }

// kernels: a block a row, joined by shuffles, both statistics in one sweep.
constexpr float kLowest = -3.402823466e38f;  // the most negative float

// Every lane of a warp gets the joined value of all lanes.
__device__ float warp_max(float value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  }
  return value;
}

// Every thread of a block gets the joined value of all threads.
__device__ float block_max(float value) {
  __shared__ float values[8];  // one for each warp
  value = warp_max(value);
  if (threadIdx.x % 32 == 0) values[threadIdx.x / 32] = value;
  __syncthreads();
  value = threadIdx.x % 32 < 8 ? values[threadIdx.x % 32] : kLowest;
  value = warp_max(value);
  __syncthreads();  // values may be used again
  return value;
}

// Every lane of a warp gets the joined value of all lanes.
__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value = value + __shfl_xor_sync(0xffffffffu, value, offset);
  }
  return value;
}

// Every thread of a block gets the joined value of all threads.
__device__ float block_sum(float value) {
  __shared__ float values[8];  // one for each warp
  value = warp_sum(value);
  if (threadIdx.x % 32 == 0) values[threadIdx.x / 32] = value;
  __syncthreads();
  value = threadIdx.x % 32 < 8 ? values[threadIdx.x % 32] : 0.0f;
  value = warp_sum(value);
  __syncthreads();  // values may be used again
  return value;
}

__global__ void softmax_kernel(const float* x, float* out, int rows, int cols) {
  const int row = blockIdx.x;
  const float* x_row = x + (size_t)row * cols;
  float* out_row = out + (size_t)row * cols;
  const int vectors = cols % 4 == 0 ? cols / 4 : 0;  // whole vectors keep rows aligned

  float maximum = kLowest;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < vectors; i += blockDim.x) {
    const float4 x_vector = reinterpret_cast<const float4*>(x_row)[i];
    {
      const float value = load(x_vector.x);
      if (value > maximum) {
        sum *= expf(maximum - value);
        maximum = value;
      }
      sum += expf(value - maximum);
    }
    {
      const float value = load(x_vector.y);
      if (value > maximum) {
        sum *= expf(maximum - value);
        maximum = value;
      }
      sum += expf(value - maximum);
    }
    {
      const float value = load(x_vector.z);
      if (value > maximum) {
        sum *= expf(maximum - value);
        maximum = value;
      }
      sum += expf(value - maximum);
    }
    {
      const float value = load(x_vector.w);
      if (value > maximum) {
        sum *= expf(maximum - value);
        maximum = value;
      }
      sum += expf(value - maximum);
    }
  }
  for (int col = vectors * 4 + threadIdx.x; col < cols; col += blockDim.x) {
    const float value = load(x_row[col]);
    if (value > maximum) {
      sum *= expf(maximum - value);
      maximum = value;
    }
    sum += expf(value - maximum);
  }
  const float own_maximum = maximum;
  maximum = block_max(own_maximum);
  sum = block_sum(sum * expf(own_maximum - maximum));

  for (int i = threadIdx.x; i < vectors; i += blockDim.x) {
    const float4 x_vector = reinterpret_cast<const float4*>(x_row)[i];
    float4 out_vector;
    {
      const float value = load(x_vector.x);
      out_vector.x = finish(value, maximum, sum);
    }
    {
      const float value = load(x_vector.y);
      out_vector.y = finish(value, maximum, sum);
    }
    {
      const float value = load(x_vector.z);
      out_vector.z = finish(value, maximum, sum);
    }
    {
      const float value = load(x_vector.w);
      out_vector.w = finish(value, maximum, sum);
    }
    reinterpret_cast<float4*>(out_row)[i] = out_vector;
  }
  for (int col = vectors * 4 + threadIdx.x; col < cols; col += blockDim.x) {
    const float value = load(x_row[col]);
    out_row[col] = finish(value, maximum, sum);
  }
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  softmax_kernel<<<rows, 256>>>(x, out, rows, cols);
}
