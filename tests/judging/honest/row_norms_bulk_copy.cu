// problem: problems/row_norms
// style: cp.async.bulk into shared memory waited for by an mbarrier, two stages; rows of unaligned length read plainly
// cuda: correct
// sim: correct
#include <cstdint>

constexpr int kPiece = 1024, kThreads = 128;

__device__ uint32_t Address(const void* shared) { return static_cast<uint32_t>(__cvta_generic_to_shared(shared)); }

__device__ void Wait(uint64_t* barrier, int parity) {
  asm volatile(
      "{\n"
      "  .reg .pred done;\n"
      "AGAIN:\n"
      "  mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "  @!done bra AGAIN;\n"
      "}\n" ::"r"(Address(barrier)),
      "r"(parity)
      : "memory");
}

__global__ void RowNorms(const float* x, float* out, int cols) {
  __shared__ alignas(128) float stage[2][kPiece];
  __shared__ alignas(8) uint64_t full[2];
  __shared__ float of_warp[kThreads / 32];
  const float* row = x + static_cast<size_t>(blockIdx.x) * cols;
  const bool aligned = reinterpret_cast<std::uintptr_t>(row) % 16 == 0;
  const int pieces = aligned ? cols / kPiece : 0;
  if (threadIdx.x == 0) {
    for (uint64_t& barrier : full) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(Address(&barrier)));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  const auto fetch = [&](int piece) {
    if (threadIdx.x != 0 || piece >= pieces) return;
    const uint32_t barrier = Address(&full[piece % 2]), bytes = kPiece * sizeof(float);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     Address(stage[piece % 2])),
                 "l"(row + static_cast<size_t>(piece) * kPiece), "r"(bytes), "r"(barrier)
                 : "memory");
  };
  fetch(0);
  float sum = 0.0f;
  for (int piece = 0; piece < pieces; ++piece) {
    fetch(piece + 1);
    Wait(&full[piece % 2], piece / 2 % 2);
    for (int i = threadIdx.x; i < kPiece; i += kThreads) sum += stage[piece % 2][i] * stage[piece % 2][i];
    __syncthreads();
  }
  for (int c = pieces * kPiece + threadIdx.x; c < cols; c += kThreads) sum += row[c] * row[c];
  for (int mask = 16; mask > 0; mask >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = sqrtf(of_warp[0] + of_warp[1] + of_warp[2] + of_warp[3]);
}

extern "C" void launch(const float* x, float* out, int rows, int cols) { RowNorms<<<rows, kThreads>>>(x, out, cols); }
