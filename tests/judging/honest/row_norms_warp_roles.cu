// problem: problems/row_norms
// style: warps with roles: one fetches pieces into a double buffer, three sum; named barriers by inline PTX
// cuda: correct
// sim: correct
constexpr int kPiece = 512, kThreads = 128;

// Barriers 1 and 2: a buffer is full. 3 and 4: it is free again.
__device__ __forceinline__ void Sync(int id) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(kThreads) : "memory");
}
__device__ __forceinline__ void Arrive(int id) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(kThreads) : "memory");
}

__global__ void RowNorms(const float* x, float* out, int cols) {
  __shared__ float buffer[2][kPiece];
  __shared__ float of_warp[3];
  const float* row = x + static_cast<size_t>(blockIdx.x) * cols;
  const int pieces = (cols + kPiece - 1) / kPiece, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp == 0) {
    for (int piece = 0; piece < pieces; ++piece) {
      if (piece >= 2) Sync(3 + piece % 2);
      for (int i = lane; i < kPiece; i += 32) {
        const int c = piece * kPiece + i;
        buffer[piece % 2][i] = c < cols ? row[c] : 0.0f;
      }
      Arrive(1 + piece % 2);
    }
  } else {
    float sum = 0.0f;
    for (int piece = 0; piece < pieces; ++piece) {
      Sync(1 + piece % 2);
      for (int i = threadIdx.x - 32; i < kPiece; i += kThreads - 32) {
        sum = fmaf(buffer[piece % 2][i], buffer[piece % 2][i], sum);
      }
      if (piece + 2 < pieces) Arrive(3 + piece % 2);
    }
    for (int mask = 16; mask > 0; mask >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    if (lane == 0) of_warp[warp - 1] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = sqrtf(of_warp[0] + of_warp[1] + of_warp[2]);
}

extern "C" void launch(const float* x, float* out, int rows, int cols) {
  RowNorms<<<rows, kThreads>>>(x, out, cols);
}
