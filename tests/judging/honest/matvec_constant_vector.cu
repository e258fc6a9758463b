// problem: problems/matvec
// style: the vector copied to __constant__ memory from device to device, a thread a row over a shared tile
// cuda: correct
// sim: correct
constexpr int kConstant = 4096, kRows = 32, kTile = 32;
__constant__ float vector_part[kConstant];

__global__ void MatVecPart(const float* x, float* out, int rows, int cols, int start, int length) {
  __shared__ float tile[kRows][kTile + 1];
  const int first = blockIdx.x * kRows;
  float sum = 0.0f;
  for (int base = 0; base < length; base += kTile) {
    for (int r = threadIdx.y; r < kRows; r += blockDim.y) {
      const int row = first + r, col = base + threadIdx.x;
      tile[r][threadIdx.x] = row < rows && col < length ? x[(size_t)row * cols + start + col] : 0.0f;
    }
    __syncthreads();
    if (threadIdx.y == 0) {
      for (int i = 0; i < min(kTile, length - base); ++i) sum += tile[threadIdx.x][i] * vector_part[base + i];
    }
    __syncthreads();
  }
  const int row = first + threadIdx.x;
  if (threadIdx.y == 0 && row < rows) out[row] = start == 0 ? sum : out[row] + sum;
}

extern "C" void launch(const float* x, const float* v, float* out, int rows, int cols) {
  for (int start = 0; start < cols; start += kConstant) {
    const int length = min(kConstant, cols - start);
    cudaMemcpyToSymbolAsync(vector_part, v + start, length * sizeof(float), 0, cudaMemcpyDeviceToDevice, 0);
    MatVecPart<<<(rows + kRows - 1) / kRows, dim3(kTile, 4)>>>(x, out, rows, cols, start, length);
  }
}
