// problem: problems/row_norms
// style: an mbarrier in place of __syncthreads: arrive, then wait for the phase
// cuda: correct
// sim: correct
#include <cstdint>

constexpr int kThreads = 128;

__device__ void ArriveAndWait(uint64_t* barrier) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(barrier));
  uint64_t state;
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(address) : "memory");
  uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{\n"
        "  .reg .pred p;\n"
        "  mbarrier.test_wait.shared::cta.b64 p, [%1], %2;\n"
        "  selp.u32 %0, 1, 0, p;\n"
        "}\n"
        : "=r"(done)
        : "r"(address), "l"(state)
        : "memory");
  }
}

__global__ void RowNorms(const float* x, float* out, int cols) {
  __shared__ float values[kThreads];
  __shared__ alignas(8) uint64_t barrier;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(
                     static_cast<uint32_t>(__cvta_generic_to_shared(&barrier))),
                 "n"(kThreads)
                 : "memory");
  }
  __syncthreads();
  float sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += kThreads) {
    const float value = x[static_cast<size_t>(blockIdx.x) * cols + c];
    sum += value * value;
  }
  values[threadIdx.x] = sum;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    ArriveAndWait(&barrier);
    if (threadIdx.x < half) values[threadIdx.x] += values[threadIdx.x + half];
  }
  if (threadIdx.x == 0) out[blockIdx.x] = sqrtf(values[0]);
}

extern "C" void launch(const float* x, float* out, int rows, int cols) { RowNorms<<<rows, kThreads>>>(x, out, cols); }
