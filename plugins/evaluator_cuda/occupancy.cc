#include "evaluator_cuda/occupancy.h"

#include <algorithm>
#include <utility>

namespace kgrpo::evaluator_cuda {
namespace {

constexpr uint32_t kWarp = 32, kPartitions = 4;
constexpr uint32_t kRegisterGrain = 256;  // registers of a warp
constexpr uint64_t kSharedGrain = 128;

template <typename T>
T RoundedUp(T value, T grain) {
  return (value + grain - 1) / grain * grain;
}

}  // namespace

uint32_t ResidentBlocks::Least() const { return std::min({by_registers, by_shared_memory, by_threads, by_blocks}); }

ResidentBlocks CountResidentBlocks(const Multiprocessor& has, const BlockNeeds& needs) {
  const uint32_t warps = (needs.threads + kWarp - 1) / kWarp;
  const uint32_t warp_registers = RoundedUp(std::max(needs.registers, 1u) * kWarp, kRegisterGrain);
  const uint32_t warps_by_registers = has.registers / kPartitions / warp_registers * kPartitions;
  const uint64_t shared = RoundedUp(needs.shared_bytes + has.reserved_shared_bytes, kSharedGrain);
  ResidentBlocks blocks;
  blocks.by_registers = warps_by_registers / warps;
  blocks.by_shared_memory = shared > 0 ? static_cast<uint32_t>(has.shared_bytes / shared) : has.blocks;
  blocks.by_threads = has.threads / kWarp / warps;
  blocks.by_blocks = has.blocks;
  const std::pair<uint32_t, const char*> limits[] = {{blocks.by_registers, "registers"},
                                                     {blocks.by_shared_memory, "shared memory"},
                                                     {blocks.by_threads, "threads"},
                                                     {blocks.by_blocks, "blocks"}};
  for (const auto& [count, name] : limits) {
    if (count == blocks.Least()) blocks.limit += (blocks.limit.empty() ? "" : " and ") + std::string(name);
  }
  return blocks;
}

}  // namespace kgrpo::evaluator_cuda
