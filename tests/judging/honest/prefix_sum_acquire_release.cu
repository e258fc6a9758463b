// problem: problems/prefix_sum
// style: a chain of tiles by ld.acquire and st.release (inline PTX); flags hold the number of the call, so nothing is cleared
// cuda: correct
// sim: correct
constexpr int kTile = 256, kMostTiles = 1 << 15;
__device__ float carries[kMostTiles];
__device__ unsigned flags[kMostTiles];

__global__ void Scan(const float* x, float* out, int cols, int tiles, unsigned call) {
  __shared__ float of_warp[kTile / 32];
  __shared__ float before;
  // Blocks start in the order of their index: those of lower index are resident or done.
  const int row = blockIdx.x / tiles, tile = blockIdx.x % tiles, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int col = tile * kTile + threadIdx.x;
  const size_t index = static_cast<size_t>(row) * cols + col;
  float value = col < cols ? x[index] : 0.0f;
  for (int d = 1; d < 32; d *= 2) {
    const float left = __shfl_up_sync(0xffffffffu, value, d);
    if (lane >= d) value += left;
  }
  if (lane == 31) of_warp[warp] = value;
  __syncthreads();
  float left = 0.0f;
  for (int w = 0; w < warp; ++w) left += of_warp[w];
  if (threadIdx.x == kTile - 1) {
    float carry = 0.0f;
    if (tile > 0) {
      unsigned seen;
      do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(&flags[blockIdx.x - 1]) : "memory");
      } while (seen != call);
      carry = carries[blockIdx.x - 1];
    }
    carries[blockIdx.x] = carry + left + value;
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(&flags[blockIdx.x]), "r"(call) : "memory");
    before = carry;
  }
  __syncthreads();
  if (col < cols) out[index] = before + left + value;
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  static unsigned call = 0;
  const int tiles = (cols + kTile - 1) / kTile, rows_at_once = kMostTiles / tiles;
  for (int first = 0; first < rows; first += rows_at_once) {
    const size_t offset = static_cast<size_t>(first) * cols;
    Scan<<<min(rows_at_once, rows - first) * tiles, kTile>>>(x + offset, out + offset, cols, tiles, ++call);
  }
}
