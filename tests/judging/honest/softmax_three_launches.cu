// problem: problems/softmax_long
// style: maxima, sums and quotients by three launches; the statistics of rows in __device__ globals, rows in batches
// cuda: correct
// sim: correct
constexpr int kBatch = 256;
__device__ float maxima[kBatch];
__device__ float sums[kBatch];

__global__ void RowMaximum(const float* x, int cols) {
  const float* row = x + (size_t)blockIdx.x * cols;
  float m = __int_as_float(0xff800000);
  for (int c = threadIdx.x; c < cols; c += 128) m = fmaxf(m, row[c]);
  __shared__ float s[128];
  s[threadIdx.x] = m;
  __syncthreads();
  for (int h = 64; h; h >>= 1) {
    if (threadIdx.x < h) s[threadIdx.x] = fmaxf(s[threadIdx.x], s[threadIdx.x + h]);
    __syncthreads();
  }
  if (!threadIdx.x) maxima[blockIdx.x] = s[0];
}

__global__ void RowSum(const float* x, float* out, int cols) {
  const size_t first = (size_t)blockIdx.x * cols;
  const float m = maxima[blockIdx.x];
  float sum = 0;
  for (int c = threadIdx.x; c < cols; c += 128) {
    const float e = expf(x[first + c] - m);
    out[first + c] = e;
    sum += e;
  }
  __shared__ float s[128];
  s[threadIdx.x] = sum;
  __syncthreads();
  for (int h = 64; h; h >>= 1) {
    if (threadIdx.x < h) s[threadIdx.x] += s[threadIdx.x + h];
    __syncthreads();
  }
  if (!threadIdx.x) sums[blockIdx.x] = s[0];
}

__global__ void Divide(float* out, int cols) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c < cols) out[(size_t)blockIdx.y * cols + c] *= 1.0f / sums[blockIdx.y];
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  for (int first = 0; first < rows; first += kBatch) {
    const int count = rows - first < kBatch ? rows - first : kBatch;
    const size_t offset = (size_t)first * cols;
    RowMaximum<<<count, 128>>>(x + offset, cols);
    RowSum<<<count, 128>>>(x + offset, out + offset, cols);
    Divide<<<dim3((cols + 255) / 256, count), 256>>>(out + offset, cols);
  }
}
