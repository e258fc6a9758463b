// problem: problems/running_maximum
// style: maxima of tiles, a scan over them, then the tiles again: three launches, workspace in __device__ memory, 2D grids
// cuda: correct
// sim: correct
constexpr int kTile = 128, kMostTiles = 4096, kBatch = 64;
__device__ unsigned tile_maximum[kBatch][kMostTiles];

__device__ unsigned Magnitude(float v) { return __float_as_uint(v) & 0x7fffffffu; }

__global__ void TileMaxima(const float* x, int cols) {
  __shared__ unsigned largest;
  if (threadIdx.x == 0) largest = 0;
  __syncthreads();
  const int col = blockIdx.x * kTile + threadIdx.x;
  if (col < cols) atomicMax(&largest, Magnitude(x[static_cast<size_t>(blockIdx.y) * cols + col]));
  __syncthreads();
  if (threadIdx.x == 0) tile_maximum[blockIdx.y][blockIdx.x] = largest;
}

__global__ void ScanTiles(int rows, int tiles) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  unsigned before = 0;
  for (int t = 0; t < tiles; ++t) {
    const unsigned own = tile_maximum[row][t];
    tile_maximum[row][t] = before;
    before = max(before, own);
  }
}

__global__ void ScanWithin(const float* x, float* out, int cols) {
  __shared__ unsigned of_warp[kTile / 32];
  const int col = blockIdx.x * kTile + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const size_t i = static_cast<size_t>(blockIdx.y) * cols + col;
  unsigned value = col < cols ? Magnitude(x[i]) : 0;
  for (int d = 1; d < 32; d *= 2) value = max(value, __shfl_up_sync(0xffffffffu, value, d));
  if (lane == 31) of_warp[warp] = value;
  __syncthreads();
  value = max(value, tile_maximum[blockIdx.y][blockIdx.x]);
  for (int w = 0; w < warp; ++w) value = max(value, of_warp[w]);
  if (col < cols) out[i] = __uint_as_float(value);
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  const int tiles = (cols + kTile - 1) / kTile;
  for (int first = 0; first < rows; first += kBatch) {
    const int count = min(kBatch, rows - first);
    const size_t offset = static_cast<size_t>(first) * cols;
    TileMaxima<<<dim3(tiles, count), kTile>>>(x + offset, cols);
    ScanTiles<<<1, kBatch>>>(count, tiles);
    ScanWithin<<<dim3(tiles, count), kTile>>>(x + offset, out + offset, cols);
  }
}
