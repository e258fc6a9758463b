#include "simt/time/machine_code.h"

#include <map>
#include <utility>

#include "simt/lower/cost.h"

namespace kgrpo::simt {
namespace {

// ptxas makes one 8- or 16-byte load of neighbouring 4-byte loads of shared memory where it can prove them aligned.
void MergeSharedLoads(const Kernel& kernel, const BasicBlock& block, MachineCode& code) {
  // (base register, offset) -> pc, since the last store or barrier
  std::map<std::pair<uint32_t, int64_t>, uint32_t> found;
  auto flush = [&] {
    for (auto it = found.begin(); it != found.end();) {
      const auto [base, offset] = it->first;
      uint32_t run = 1;
      for (auto next = std::next(it);
           next != found.end() && next->first == std::pair{base, offset + 4 * static_cast<int64_t>(run)} && run < 4;
           ++next)
        ++run;
      const uint32_t width = run >= 4 ? 4 : run >= 2 ? 2 : 1;
      const uint32_t leader = it->second;
      if (width > 1) {
        code.merged_into_wide[leader] = static_cast<uint8_t>(4 * width);
        for (uint32_t i = 0; i < width; ++i) code.merged_leader[std::next(it, i)->second] = leader + 1;
      }
      std::advance(it, width);
    }
    found.clear();
  };
  for (uint32_t pc = block.first; pc < block.last; ++pc) {
    const Instruction& in = kernel.code[pc];
    const auto latency = static_cast<LatencyClass>(kernel.costs[pc].latency);
    if (latency == LatencyClass::kShared && in.size == 4 && in.count == 1 && in.predicate < 0) {
      uint32_t base = UINT32_MAX;
      for (uint32_t m = kernel.mention_start[pc]; m < kernel.mention_start[pc + 1]; ++m) {
        if ((kernel.mentions[m] & 1u) == 0) base = kernel.mentions[m] / 2;
      }
      if (base != UINT32_MAX) found.emplace(std::pair{base, in.offset}, pc);
    } else if (latency == LatencyClass::kBarrier ||
               (kernel.costs[pc].pipe == Pipe::kMemory && latency == LatencyClass::kNone)) {
      flush();
    }
  }
  flush();
}

// A 64-bit addition of an index that mul.wide has just scaled is one multiply-add.
void FuseAddresses(const Kernel& kernel, MachineCode& code) {
  std::vector<uint32_t> uses(kernel.virtual_registers, 0);
  std::vector<int32_t> made_by(kernel.virtual_registers, -1);
  for (uint32_t pc = 0; pc < kernel.code.size(); ++pc) {
    for (uint32_t m = kernel.mention_start[pc]; m < kernel.mention_start[pc + 1]; ++m) {
      if ((kernel.mentions[m] & 1u) == 0) ++uses[kernel.mentions[m] / 2];
    }
  }
  for (uint32_t pc = 0; pc < kernel.code.size(); ++pc) {
    const Cost& cost = kernel.costs[pc];
    if (cost.pipe == Pipe::kInt && cost.issue == 2) {
      for (uint32_t m = kernel.mention_start[pc]; m < kernel.mention_start[pc + 1]; ++m) {
        const uint32_t reg = kernel.mentions[m] / 2;
        if ((kernel.mentions[m] & 1u) == 0 && made_by[reg] >= 0 && uses[reg] <= 4) {
          code.costs[pc].issue = code.costs[pc].pipe_use = 0;
          code.costs[pc].latency = static_cast<uint8_t>(LatencyClass::kNone);
        }
      }
    }
    for (uint32_t m = kernel.mention_start[pc]; m < kernel.mention_start[pc + 1]; ++m) {
      if ((kernel.mentions[m] & 1u) != 0)
        made_by[kernel.mentions[m] / 2] = kernel.is_wide_product[pc] != 0 ? static_cast<int32_t>(pc) : -1;
    }
  }
}

}  // namespace

MachineCode TowardsMachineCode(const Kernel& kernel) {
  const size_t n = kernel.code.size();
  MachineCode code{kernel.costs, std::vector<uint8_t>(n, 0), std::vector<uint32_t>(n, 0)};
  for (const BasicBlock& block : kernel.blocks) MergeSharedLoads(kernel, block, code);
  FuseAddresses(kernel, code);
  return code;
}

}  // namespace kgrpo::simt
