// problem: problems/prefix_sum
// style: a chain of blocks whose flags are polled by atomicAdd(flag, 0) and set by atomicExch after a fence
// cuda: correct
// sim: correct
constexpr int kTile = 128, kMostTiles = 1 << 15;
__device__ float carries[kMostTiles];
__device__ int flags[kMostTiles];
__device__ unsigned started;

__global__ void Scan(const float* x, float* out, int cols, int tiles) {
  __shared__ float values[2][kTile];
  __shared__ unsigned ticket;
  __shared__ float carry;
  if (threadIdx.x == 0) ticket = atomicAdd(&started, 1u);
  __syncthreads();
  const int block = ticket, row = block / tiles, tile = block % tiles, col = tile * kTile + threadIdx.x;
  const size_t index = static_cast<size_t>(row) * cols + col;
  int from = 0;
  values[0][threadIdx.x] = col < cols ? x[index] : 0.0f;
  __syncthreads();
  for (int d = 1; d < kTile; d *= 2, from ^= 1) {
    float value = values[from][threadIdx.x];
    if (threadIdx.x >= d) value += values[from][threadIdx.x - d];
    values[from ^ 1][threadIdx.x] = value;
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    carry = 0.0f;
    if (tile > 0) {
      while (atomicAdd(&flags[block - 1], 0) == 0) {
      }
      __threadfence();
      carry = carries[block - 1];
    }
    carries[block] = carry + values[from][kTile - 1];
    __threadfence();
    atomicExch(&flags[block], 1);
  }
  __syncthreads();
  if (col < cols) out[index] = carry + values[from][threadIdx.x];
}

__global__ void Clear(int tiles) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < tiles) flags[i] = 0;
  if (i == 0) started = 0;
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  const int tiles = (cols + kTile - 1) / kTile, rows_at_once = kMostTiles / tiles;
  for (int first = 0; first < rows; first += rows_at_once) {
    const int count = min(rows_at_once, rows - first) * tiles;
    const size_t offset = static_cast<size_t>(first) * cols;
    Clear<<<(count + 255) / 256, 256>>>(count);
    Scan<<<count, kTile>>>(x + offset, out + offset, cols, tiles);
  }
}
