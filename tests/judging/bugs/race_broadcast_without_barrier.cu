// problem: problems/softmax_long
// bug: thread 0 writes the total, and everybody divides by it at once
// twin: honest/softmax_row_in_shared
// finding: race in Softmax: reads, shared array 'total' (4 bytes), writes, barrier between
__global__ void Softmax(const float* x, float* out, int cols) {
  __shared__ float s[256];
  __shared__ float total;
  const size_t row = static_cast<size_t>(blockIdx.x) * cols;
  if (threadIdx.x == 0) total = 0;
  float sum = 0;
  for (int c = threadIdx.x; c < cols; c += 256) sum += expf(x[row + c]);
  s[threadIdx.x] = sum;
  __syncthreads();
  for (int d = 128; d > 0; d /= 2) {
    if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x == 0) total = s[0];  // found
  const float scale = 1.0f / total;  // found
  for (int c = threadIdx.x; c < cols; c += 256) out[row + c] = expf(x[row + c]) * scale;
}

extern "C" void launch(const float* x, float* out, int rows, int cols) { Softmax<<<rows, 256>>>(x, out, cols); }
