// Prefix sums of each row.
// layout: x[rows][cols], out[rows][cols]
// schedule: scan cooperate shuffle vectorize=4

__device__ float load(float x) { return x; }

__device__ float identity() { return 0.0f; }
__device__ float combine(float a, float b) { return a + b; }

// kernels: a block walks its row, scanning a segment by shuffles.
__global__ void scan_kernel(const float* x, float* out, int rows, int cols) {
  __shared__ float warp_totals[8];
  const int lane = threadIdx.x % 32;
  const int row = blockIdx.x;
  const float* x_row = x + (size_t)row * cols;
  float* out_row = out + (size_t)row * cols;
  float carry = identity();
  for (int start = 0; start < cols; start += 1024) {
    const int col = start + threadIdx.x * 4;
    const bool whole = cols % 4 == 0 && col < cols;
    float item[4];
    if (whole) {
      const float4 loaded = *reinterpret_cast<const float4*>(x_row + col);
      item[0] = load(loaded.x);
      item[1] = load(loaded.y);
      item[2] = load(loaded.z);
      item[3] = load(loaded.w);
    } else {
      for (int j = 0; j < 4; ++j) item[j] = col + j < cols ? load(x_row[col + j]) : identity();
    }
    for (int j = 1; j < 4; ++j) item[j] = combine(item[j - 1], item[j]);
    const float total = item[4 - 1];
    float value = total;
    for (int offset = 1; offset < 32; offset *= 2) {
      const float left = __shfl_up_sync(0xffffffffu, value, offset);
      if (lane >= offset) value = combine(left, value);
    }
    if (lane == 31) warp_totals[threadIdx.x / 32] = value;
    const float left = __shfl_up_sync(0xffffffffu, value, 1);
    __syncthreads();
    float before = carry;
    for (int warp = 0; warp < 8; ++warp) {
      const float warp_total = warp_totals[warp];
      if (warp < threadIdx.x / 32) before = combine(before, warp_total);
      carry = combine(carry, warp_total);
    }
    if (lane != 0) before = combine(before, left);
    __syncthreads();  // warp_totals may be used again
    if (whole) {
      float4 scanned;
      scanned.x = combine(before, item[0]);
      scanned.y = combine(before, item[1]);
      scanned.z = combine(before, item[2]);
      scanned.w = combine(before, item[3]);
      *reinterpret_cast<float4*>(out_row + col) = scanned;
    } else {
      for (int j = 0; j < 4; ++j) {
        if (col + j < cols) out_row[col + j] = combine(before, item[j]);
      }
    }
  }
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  scan_kernel<<<rows, 256>>>(x, out, rows, cols);
}
