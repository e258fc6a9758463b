// problem: tests/evaluator/problems/row_sum
// style: one thread copies the row in bulk; an mbarrier says when it is there
// cuda: correct
// sim: correct
#include <cstdint>

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

__global__ void Sum(const float* x, float* out) {
  __shared__ alignas(128) float tile[128];
  __shared__ alignas(8) uint64_t full;
  const int t = threadIdx.x;
  if (t == 0) {
    const uint32_t barrier = Address(&full), to = Address(tile);
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(barrier) : "memory");
    const float* row = x + blockIdx.x * 64;
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(row), "r"(256), "r"(barrier) : "memory");
  }
  __syncthreads();
  Wait(&full, 0);
  float v = tile[t] + tile[t + 32];
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
  if (t == 0) out[blockIdx.x] = v;
}

extern "C" void launch(const float* x, float* out, int rows) { Sum<<<rows, 32>>>(x, out); }
