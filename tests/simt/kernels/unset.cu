// Variables that are read before they are set, in the styles in which that happens, as nvcc leaves them at -O3; and
// honest kernels that leave variables unset which nobody then uses. Used by unset_test.cc; `// found` marks the lines
// of the findings. x has 32 x 32 values, n is 32.
extern "C" __global__ void Sum(const float* x, float* out, int n) {
  float sum;
  for (int c = 0; c < n; ++c) sum += x[threadIdx.x * n + c];
  out[threadIdx.x] = sum;  // found
}

extern "C" __global__ void Previous(const float* x, float* out, int n) {
  float before;
  for (int c = 0; c < n; ++c) {
    const float now = x[threadIdx.x * n + c];
    out[threadIdx.x * n + c] = now - before;  // found
    before = now;
  }
}

extern "C" __global__ void RegisterArray(const float* x, float* out, int n) {
  float sums[4];
  for (int c = 0; c < n; c += 4) {
#pragma unroll
    for (int k = 0; k < 4; ++k) sums[k] = fmaf(x[threadIdx.x * n + c + k], 2.0f, sums[k]);
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) out[threadIdx.x * 4 + k] = sums[k];  // found
}

extern "C" __global__ void ThroughShared(const float* x, float* out, int n) {
  __shared__ float s[32];
  float sum;
  for (int c = 0; c < n; ++c) sum += x[threadIdx.x * n + c];
  s[threadIdx.x] = sum;
  __syncwarp();
  out[threadIdx.x] = s[threadIdx.x ^ 1];  // found
}

extern "C" __global__ void Atomic(const float* x, float* out, int n) {
  float sum;
  for (int c = 0; c < n; ++c) sum += x[threadIdx.x * n + c];
  atomicAdd(out, sum);  // found
}

extern "C" __global__ void Counted(const float* x, float* out, int n) {
  int count;
  for (int c = 0; c < n; ++c) {
    if (x[threadIdx.x * n + c] > 0) ++count;
  }
  while (count > 0) count -= 7;  // found
  out[threadIdx.x] = static_cast<float>(count);  // found
}

// The optimiser makes this correct, since it may assume any value.
extern "C" __global__ void FoldedBranch(const float* x, float* out, int n) {
  float v;
  if (x[threadIdx.x] > 0) v = 2 * x[threadIdx.x];
  out[threadIdx.x] = v;
}

extern "C" __global__ void HonestPrefetch(const float* x, float* out, int n) {
  float next, sum = 0;
  if (threadIdx.x < n) next = x[threadIdx.x];
  for (int c = threadIdx.x; c < n; c += 8) {
    const float now = next;
    if (c + 8 < n) next = x[c + 8];
    sum += now;
  }
  out[threadIdx.x] = sum;
}

extern "C" __global__ void HonestCondition(const float* x, float* out, int n) {
  __shared__ float s[32];
  float v, w;
  const bool in = threadIdx.x < 20;
  if (in) {
    v = x[threadIdx.x];
    w = v * v;
  }
  s[threadIdx.x] = w;
  __syncthreads();
  const float other = __shfl_xor_sync(~0u, v, 16);
  out[threadIdx.x] = in && threadIdx.x < 4 ? v + other + s[threadIdx.x + 1] : 0;
}
