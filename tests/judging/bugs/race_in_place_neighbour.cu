// problem: tests/evaluator/problems/row_stencil
// bug: the sum is written into shared memory while the neighbour may not have read the old value
// twin: honest/row_stencil_warp_in_place
// finding: race in Stencil: shared array 's' (4096 bytes), barrier between
__global__ void Stencil(const float* x, float* out, int cols) {
  __shared__ float s[1024];
  const size_t row = static_cast<size_t>(blockIdx.x) * cols;
  for (int c = threadIdx.x; c < cols; c += 128) s[c] = x[row + c];
  __syncthreads();
#pragma unroll 1
  for (int c = threadIdx.x; c < cols; c += 128) {
    s[c] = (c > 0 ? s[c - 1] : 0.0f) + (c + 1 < cols ? s[c + 1] : 0.0f);  // found
  }
  __syncthreads();
  for (int c = threadIdx.x; c < cols; c += 128) out[row + c] = s[c];
}

extern "C" void launch(const float* x, float* out, int rows, int cols) { Stencil<<<rows, 128>>>(x, out, cols); }
