// problem: problems/softmax_short
// style: a thread a row; 64 rows staged coalesced through dynamic shared memory with a padded stride
// cuda: correct
// sim: correct
constexpr int kRows = 64;

__global__ void Softmax(const float* x, float* out, int rows, int cols) {
  extern __shared__ float tile[];
  const int stride = cols | 1;  // odd: neighbouring rows start in different banks
  const int first = blockIdx.x * kRows;
  const int count = min(kRows, rows - first);
  const float* source = x + static_cast<size_t>(first) * cols;
  for (int i = threadIdx.x; i < count * cols; i += kRows) tile[i / cols * stride + i % cols] = source[i];
  __syncthreads();
  if (threadIdx.x < count) {
    float* row = tile + threadIdx.x * stride;
    float maximum = row[0];
    for (int c = 1; c < cols; ++c) maximum = fmaxf(maximum, row[c]);
    float sum = 0.0f;
    for (int c = 0; c < cols; ++c) sum += row[c] = expf(row[c] - maximum);
    const float scale = 1.0f / sum;
    for (int c = 0; c < cols; ++c) row[c] *= scale;
  }
  __syncthreads();
  float* target = out + static_cast<size_t>(first) * cols;
  for (int i = threadIdx.x; i < count * cols; i += kRows) target[i] = tile[i / cols * stride + i % cols];
}

__global__ void SoftmaxWide(const float* x, float* out, int cols) {
  x += (size_t)blockIdx.x * cols;
  out += (size_t)blockIdx.x * cols;
  float maximum = -INFINITY, sum = 0;
  for (int c = 0; c < cols; ++c) maximum = fmaxf(maximum, x[c]);
  for (int c = 0; c < cols; ++c) sum += expf(x[c] - maximum);
  for (int c = threadIdx.x; c < cols; c += blockDim.x) out[c] = expf(x[c] - maximum) / sum;
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  const size_t bytes = sizeof(float) * kRows * (cols | 1);
  if (bytes <= 48 * 1024) {
    Softmax<<<(rows + kRows - 1) / kRows, kRows, bytes>>>(x, out, rows, cols);
  } else {
    SoftmaxWide<<<rows, 32>>>(x, out, cols);
  }
}
