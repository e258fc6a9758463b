// The worker's own kernels, loaded beside the candidate's (own_kernels.cc).
#include <cstdint>

// Says that the gate was reached, then waits until *open has come to `sequence`, at most for `nanoseconds`.
extern "C" __global__ void gate(const volatile uint32_t* open, volatile uint32_t* reached, uint32_t sequence,
                                uint64_t nanoseconds) {
  *reached = sequence;
  __threadfence_system();
  uint64_t begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (static_cast<int32_t>(*open - sequence) < 0 && now - begin < nanoseconds);
}

extern "C" __global__ void nothing() {}

// Makes the L2 slice that owns each line of 128 bytes hold it, without changing it. One line a block, so that many
// multiprocessors take part.
extern "C" __global__ void touch(uint32_t* lines, uint32_t count) {
  if (blockIdx.x < count) atomicAdd(lines + 32 * blockIdx.x, 0u);
}

// Reads the first word of each line, one after the other, and says how many cycles that took. `zero` is 0, which the
// compiler does not know, so each address depends on the word before.
extern "C" __global__ void walk(const uint32_t* lines, uint32_t count, uint32_t zero, uint64_t* cycles) {
  uint32_t sum = 0;
  const long long begin = clock64();
  for (uint32_t i = 0; i < count; ++i) sum = __ldcg(lines + 32 * i + sum) * zero;
  if (sum == 0) *cycles = static_cast<uint64_t>(clock64() - begin);
}
