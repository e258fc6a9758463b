// problem: tests/evaluator/problems/row_stencil
// bug: the cells left and right of the tile are there, and are never loaded
// finding: uninitialised in Stencil: that no thread of the block has written yet, shared array 'tile' (520 bytes)
__global__ void Stencil(const float* x, float* out, int cols) {
  __shared__ float tile[130];
  const size_t row = static_cast<size_t>(blockIdx.x) * cols;
  for (int start = 0; start < cols; start += 128) {
    const int c = start + threadIdx.x;
    tile[threadIdx.x + 1] = c < cols ? x[row + c] : 0.0f;
    __syncthreads();
    const float left = tile[threadIdx.x];  // found
    __syncthreads();
    if (c < cols) out[row + c] = left + (c + 1 < cols ? x[row + c + 1] : 0.0f);
  }
}

extern "C" void launch(const float* x, float* out, int rows, int cols) { Stencil<<<rows, 128>>>(x, out, cols); }
