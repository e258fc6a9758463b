// problem: problems/running_maximum
// style: Hillis and Steele's scan over two shared buffers, one barrier a step
// cuda: correct
// sim: correct
constexpr int kThreads = 256;

__global__ void Scan(const float* x, float* out, int cols) {
  __shared__ float buffer[2][kThreads];
  const size_t first = static_cast<size_t>(blockIdx.x) * cols;
  float carry = 0.0f;
  int from = 0;
  for (int start = 0; start < cols; start += kThreads) {
    const int col = start + threadIdx.x;
    buffer[from][threadIdx.x] = fmaxf(col < cols ? fabsf(x[first + col]) : 0.0f, threadIdx.x == 0 ? carry : 0.0f);
    __syncthreads();
    for (int distance = 1; distance < kThreads; distance *= 2) {
      float value = buffer[from][threadIdx.x];
      if (threadIdx.x >= distance) value = fmaxf(value, buffer[from][threadIdx.x - distance]);
      buffer[from ^ 1][threadIdx.x] = value;
      from ^= 1;
      __syncthreads();
    }
    if (col < cols) out[first + col] = buffer[from][threadIdx.x];
    carry = buffer[from][kThreads - 1];
    from ^= 1;  // the next round writes where nobody reads any more
  }
}

extern "C" void launch(const float* x, float* out, int rows, int cols) { Scan<<<rows, kThreads>>>(x, out, cols); }
