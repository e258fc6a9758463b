// How many blocks of a launch fit on a multiprocessor at once, by each of its resources, and which of them limits it.
// Used by the evaluator for its diagnosis.
#pragma once

#include <cstdint>
#include <string>

namespace kgrpo::evaluator_cuda {

// Resources of a multiprocessor.
struct Multiprocessor {
  uint32_t threads = 0;
  uint32_t blocks = 0;
  uint32_t registers = 0;
  uint64_t shared_bytes = 0;
  uint64_t reserved_shared_bytes = 0;  // the system's, of each block
};

// Resources that a block of a launch takes.
struct BlockNeeds {
  uint32_t threads = 0;
  uint32_t registers = 0;     // of a thread
  uint64_t shared_bytes = 0;  // static and dynamic
};

struct ResidentBlocks {
  uint32_t by_registers = 0, by_shared_memory = 0, by_threads = 0, by_blocks = 0;
  // The resource with room for the fewest blocks: "registers", "shared memory", "threads", "blocks", several of them
  // with "and".
  std::string limit;
  uint32_t Least() const;
};

// Counts by the rules of NVIDIA's occupancy calculator for compute capability 7.0 and later: registers are given out to
// warps by 256 in each of four partitions, shared memory to blocks by 128 bytes. Shared memory is taken to be as large
// as the device can set it. Clusters and barriers, which may limit too, do not count. `needs.threads` is at least 1.
ResidentBlocks CountResidentBlocks(const Multiprocessor& has, const BlockNeeds& needs);

}  // namespace kgrpo::evaluator_cuda
