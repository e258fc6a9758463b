// problem: tests/evaluator/problems/row_sum
// style: three warps read a word before the fourth overwrites it, which waits for them at a named barrier
// cuda: correct
// sim: correct
__global__ void Sum(const float* x, float* out) {
  __shared__ float scale, parts[3];
  const int w = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) scale = 0.5f;
  __syncthreads();
  if (w < 3) {
    const float half = scale;
    float sum = w < 2 ? x[blockIdx.x * 64 + threadIdx.x] * half : 0;
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if (lane == 0) parts[w] = sum;
  }
  asm volatile("bar.sync 1, 128;" ::: "memory");
  if (threadIdx.x == 96) scale = 2;
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = (parts[0] + parts[1] + parts[2]) * scale;
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 128>>>(x, out); }
