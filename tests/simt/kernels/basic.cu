// Kernels whose results the tests compute again on the host.
#include <cuda_fp16.h>

extern "C" __global__ void Add(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

extern "C" __global__ void AddGridStride4(const float4* a, const float4* b, float4* c, int n4) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n4; i += gridDim.x * blockDim.x) {
    const float4 x = a[i], y = b[i];
    c[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
  }
}

extern "C" __global__ void ReduceShared(const float* x, float* out, int n) {
  __shared__ float partial[256];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s) partial[threadIdx.x] += partial[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(out, partial[0]);
}

extern "C" __global__ void ReduceShuffle(const float* x, float* out, int n) {
  __shared__ float partial[32];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  for (int o = 16; o > 0; o /= 2) sum += __shfl_down_sync(0xffffffffu, sum, o);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0;
    for (int o = 16; o > 0; o /= 2) sum += __shfl_down_sync(0xffffffffu, sum, o);
    if (threadIdx.x == 0) atomicAdd(out, sum);
  }
}

extern "C" __global__ void MatmulNaive(const float* a, const float* b, float* c, int n) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n || col >= n) return;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + col];
  c[row * n + col] = sum;
}

extern "C" __global__ void MatmulUncoalesced(const float* a, const float* b, float* c, int n) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x, col = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= n || col >= n) return;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + col];
  c[row * n + col] = sum;
}

template <int T>
__device__ void Tiled(const float* a, const float* b, float* c, int n) {
  __shared__ float as[T][T], bs[T][T];
  const int row = blockIdx.y * T + threadIdx.y, col = blockIdx.x * T + threadIdx.x;
  float sum = 0;
  for (int t = 0; t < n; t += T) {
    as[threadIdx.y][threadIdx.x] = row < n && t + threadIdx.x < n ? a[row * n + t + threadIdx.x] : 0;
    bs[threadIdx.y][threadIdx.x] = t + threadIdx.y < n && col < n ? b[(t + threadIdx.y) * n + col] : 0;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < T; ++k) sum += as[threadIdx.y][k] * bs[k][threadIdx.x];
    __syncthreads();
  }
  if (row < n && col < n) c[row * n + col] = sum;
}
extern "C" __global__ void MatmulTiled16(const float* a, const float* b, float* c, int n) { Tiled<16>(a, b, c, n); }
extern "C" __global__ void MatmulTiled32(const float* a, const float* b, float* c, int n) { Tiled<32>(a, b, c, n); }

// 64 x 64 tiles, 16 x 16 threads of 4 x 4 results each. n must be a multiple of 64.
extern "C" __global__ void MatmulRegister(const float* a, const float* b, float* c, int n) {
  __shared__ float as[16][64], bs[16][64];
  const int tx = threadIdx.x, ty = threadIdx.y, t = ty * 16 + tx;
  float sum[4][4] = {};
  for (int k0 = 0; k0 < n; k0 += 16) {
    for (int i = 0; i < 4; ++i) {
      const int e = t + i * 256;
      as[e % 16][e / 16] = a[(blockIdx.y * 64 + e / 16) * n + k0 + e % 16];
      bs[e / 64][e % 64] = b[(k0 + e / 64) * n + blockIdx.x * 64 + e % 64];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      float x[4], y[4];
      for (int i = 0; i < 4; ++i) x[i] = as[k][ty * 4 + i];
      for (int i = 0; i < 4; ++i) y[i] = bs[k][tx * 4 + i];
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) sum[i][j] += x[i] * y[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) c[(blockIdx.y * 64 + ty * 4 + i) * n + blockIdx.x * 64 + tx * 4 + j] = sum[i][j];
}

// The same with vector loads and stores.
extern "C" __global__ void MatmulVector(const float* a, const float* b, float* c, int n) {
  __shared__ __align__(16) float as[16][64 + 4], bs[16][64];
  const int tx = threadIdx.x, ty = threadIdx.y, t = ty * 16 + tx;
  float sum[4][4] = {};
  for (int k0 = 0; k0 < n; k0 += 16) {
    const float4 va = *reinterpret_cast<const float4*>(&a[(blockIdx.y * 64 + t / 4) * n + k0 + t % 4 * 4]);
    as[t % 4 * 4 + 0][t / 4] = va.x;
    as[t % 4 * 4 + 1][t / 4] = va.y;
    as[t % 4 * 4 + 2][t / 4] = va.z;
    as[t % 4 * 4 + 3][t / 4] = va.w;
    *reinterpret_cast<float4*>(&bs[t / 16][t % 16 * 4]) = *reinterpret_cast<const float4*>(&b[(k0 + t / 16) * n + blockIdx.x * 64 + t % 16 * 4]);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      const float4 x = *reinterpret_cast<const float4*>(&as[k][ty * 4]), y = *reinterpret_cast<const float4*>(&bs[k][tx * 4]);
      const float xs[4] = {x.x, x.y, x.z, x.w}, ys[4] = {y.x, y.y, y.z, y.w};
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) sum[i][j] += xs[i] * ys[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) {
    *reinterpret_cast<float4*>(&c[(blockIdx.y * 64 + ty * 4 + i) * n + blockIdx.x * 64 + tx * 4]) = make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
  }
}

extern "C" __global__ void TransposeNaive(const float* in, float* out, int rows, int columns) {
  const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < columns && y + j < rows) out[x * rows + y + j] = in[(y + j) * columns + x];
}
template <int kPad>
__device__ void Transpose(const float* in, float* out, int rows, int columns) {
  __shared__ float tile[32][32 + kPad];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < columns && y + j < rows) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * columns + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < rows && y + j < columns) out[(y + j) * rows + x] = tile[threadIdx.x][threadIdx.y + j];
}
extern "C" __global__ void TransposeTile(const float* in, float* out, int rows, int columns) { Transpose<0>(in, out, rows, columns); }
extern "C" __global__ void TransposePadded(const float* in, float* out, int rows, int columns) { Transpose<1>(in, out, rows, columns); }

extern "C" __global__ void SoftmaxRow(const float* x, float* y, int columns) {
  __shared__ float scratch[32];
  const float* row = x + static_cast<size_t>(blockIdx.x) * columns;
  float m = -INFINITY;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) m = fmaxf(m, row[i]);
  for (int o = 16; o > 0; o /= 2) m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = m;
  __syncthreads();
  m = scratch[0];
  for (int w = 1; w < blockDim.x / 32; ++w) m = fmaxf(m, scratch[w]);
  __syncthreads();
  float s = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) s += expf(row[i] - m);
  for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(~0u, s, o);
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = s;
  __syncthreads();
  s = 0;
  for (int w = 0; w < blockDim.x / 32; ++w) s += scratch[w];
  for (int i = threadIdx.x; i < columns; i += blockDim.x) y[static_cast<size_t>(blockIdx.x) * columns + i] = expf(row[i] - m) / s;
}

extern "C" __global__ void HistogramShared(const unsigned char* x, unsigned* bins, int n) {
  __shared__ unsigned local[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[x[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    if (local[i]) atomicAdd(&bins[i], local[i]);
}
extern "C" __global__ void HistogramGlobal(const unsigned char* x, unsigned* bins, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&bins[x[i]], 1u);
}

// Hillis and Steele within a block, double buffered in dynamic shared memory.
extern "C" __global__ void ScanBlock(const int* x, int* y, int n) {
  extern __shared__ int buffer[];
  int* from = buffer;
  int* to = buffer + blockDim.x;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  from[threadIdx.x] = i < n ? x[i] : 0;
  __syncthreads();
  for (int d = 1; d < blockDim.x; d *= 2) {
    to[threadIdx.x] = from[threadIdx.x] + (threadIdx.x >= d ? from[threadIdx.x - d] : 0);
    int* swap = from;
    from = to;
    to = swap;
    __syncthreads();
  }
  if (i < n) y[i] = from[threadIdx.x];
}

extern "C" __global__ void HalfAxpy(const __half2* x, __half2* y, __half2 alpha, int n2) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n2) y[i] = __hfma2(alpha, x[i], y[i]);
}

__device__ __noinline__ int Collatz(unsigned n) {
  int steps = 0;
  while (n != 1) {
    n = n % 2 ? 3 * n + 1 : n / 2;
    ++steps;
  }
  return steps;
}
extern "C" __global__ void Divergent(const unsigned* x, int* steps, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) steps[i] = Collatz(x[i]);
}

__constant__ float coefficients[4] = {1.0f, -2.0f, 0.5f, 3.0f};
__device__ int counter = 7;
struct Offsets { int values[5]; };
extern "C" __global__ void Mixed(float* out, Offsets offsets, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float local[8];
  for (int j = 0; j < 8; ++j) local[j] = i * 0.25f + j;
  float v = local[(i + n) % 8] * coefficients[i % 4] + offsets.values[i % 5];
  switch (i % 7) {
    case 0: v += 1; break;
    case 1: v *= 2; break;
    case 2: v = -v; break;
    case 3: v = v * v; break;
    case 4: v -= 100; break;
    case 5: v = 5; break;
    default: v = v / 3; break;
  }
  out[i] = v;
  if (i == 0) atomicAdd(&counter, 5);
}

// A value that lives around the loop although no path sets it before: its register must not be shared.
extern "C" __global__ void Carried(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v, sum = 0;
#pragma unroll 1
  for (int k = 0; k < n; ++k) {
    if (k % 4 == 0) v = x[k];
    const float a = x[(i + k) % n], b = x[(i * 3 + k) % n], c = x[(i * 5 + k) % n];
    sum += a * b + c * v;
  }
  y[i] = sum;
}
