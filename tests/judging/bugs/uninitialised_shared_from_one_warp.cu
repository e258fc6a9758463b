// problem: problems/softmax_long
// bug: only the first lane of the first warp writes the sums of the eight warps; the other seven are read all the same
// finding: uninitialised in Softmax: that no thread of the block has written yet, shared array 'of_warp' (32 bytes)
__global__ void Softmax(const float* x, float* out, int cols) {
  __shared__ float of_warp[8];
  const float* row = x + static_cast<size_t>(blockIdx.x) * cols;
  float sum = 0;
  for (int c = threadIdx.x; c < cols; c += 256) sum += expf(row[c]);
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (threadIdx.x == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  float total = 0;
#pragma unroll 1
  for (int w = 0; w < 8; ++w) total += of_warp[w];  // found
  for (int c = threadIdx.x; c < cols; c += 256) out[static_cast<size_t>(blockIdx.x) * cols + c] = expf(row[c]) / total;
}

extern "C" void launch(const float* x, float* out, int rows, int cols) { Softmax<<<rows, 256>>>(x, out, cols); }
