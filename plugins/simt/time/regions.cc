#include "simt/time/regions.h"

#include <algorithm>

#include "simt/state/handlers.h"

namespace kgrpo::simt {
namespace {

// From a comparison of the PTX with the machine code of some 80 kernels (ptxas 13, sm_90). Loops of one block with a
// constant step and at most kMostUnrolled instructions are unrolled kTurns times. Branches over at most kMostPredicated
// instructions become predicates.
constexpr uint32_t kMostUnrolled = 50, kTurns = 4, kMostPredicated = 10;
constexpr size_t kMostBlocks = 128, kMostInstructions = 1024;  // of a region

bool Conditional(const Kernel& kernel, uint32_t pc) {
  return kernel.code[pc].run == &Branch && kernel.mention_start[pc + 1] > kernel.mention_start[pc];
}

}  // namespace

Regions::Regions(const Kernel& kernel)
    : kernel_(kernel),
      block_of_(kernel.code.size() + 1, 0),
      unrolled_(kernel.blocks.size(), 0),
      loop_head_(kernel.blocks.size(), 0) {
  for (size_t i = 0; i < kernel.blocks.size(); ++i) block_of_[kernel.blocks[i].first] = static_cast<uint32_t>(i + 1);
  for (uint32_t pc = 0; pc < kernel.code.size(); ++pc) {
    if (kernel.code[pc].run != &Branch || kernel.code[pc].extra > pc) continue;
    loop_head_[block_of_[kernel.code[pc].extra] - 1] = 1;
  }
  for (size_t i = 0; i < kernel.blocks.size(); ++i) unrolled_[i] = UnrolledByPtxas(kernel.blocks[i]) ? 1 : 0;
}

bool Regions::BecomesPredicate(const Instruction& branch) {
  return branch.extra > branch.index && branch.extra - branch.index <= kMostPredicated;
}

// Recognises a loop of one block that ends when a register that grows by a constant reaches a bound.
bool Regions::UnrolledByPtxas(const BasicBlock& block) const {
  const uint32_t end = block.last - 1;
  if (!Conditional(kernel_, end) || kernel_.code[end].extra != block.first) return false;
  if (block.last - block.first > kMostUnrolled) return false;
  if (std::find(kernel_.no_unroll.begin(), kernel_.no_unroll.end(), block.first) != kernel_.no_unroll.end())
    return false;
  const auto reads_and_writes = [&](uint32_t pc, std::vector<uint32_t>* reads, std::vector<uint32_t>* writes) {
    reads->clear();
    writes->clear();
    for (uint32_t m = kernel_.mention_start[pc]; m < kernel_.mention_start[pc + 1]; ++m)
      ((kernel_.mentions[m] & 1u) != 0 ? writes : reads)->push_back(kernel_.mentions[m] / 2);
  };
  std::vector<uint32_t> predicate, compared, reads, writes, ignored;
  reads_and_writes(end, &predicate, &ignored);
  for (uint32_t pc = block.first; pc < end; ++pc) {
    reads_and_writes(pc, &reads, &writes);
    if (writes == predicate) compared = reads;
  }
  for (uint32_t pc = block.first; pc < end; ++pc) {
    reads_and_writes(pc, &reads, &writes);
    if (writes.size() == 1 && reads == writes &&
        std::find(compared.begin(), compared.end(), writes[0]) != compared.end())
      return true;
  }
  return false;
}

// Returns true if block `to`, which ran after `from`, is scheduled with it; `turns` counts the turns of an unrolled
// loop.
bool Regions::Joins(uint32_t from, uint32_t to, uint32_t* turns) const {
  const BasicBlock &a = kernel_.blocks[from], &b = kernel_.blocks[to];
  const uint32_t end = a.last - 1;
  const Handler run = kernel_.code[end].run;
  if (from == to) return unrolled_[from] != 0 && ++*turns < kTurns;
  if (loop_head_[to] != 0) return false;
  if (run == &Branch) {
    const uint32_t target = kernel_.code[end].extra;
    if (!Conditional(kernel_, end)) return b.first == target && target > end && target - end <= kMostPredicated;
    if (target <= end || target - end > kMostPredicated) return false;
    // A branch over a jump back, out of a loop or past one, stays a branch.
    for (uint32_t pc = end + 1; pc < target; ++pc) {
      if (kernel_.code[pc].run == &Branch && kernel_.code[pc].extra <= pc) return false;
    }
    return b.first == a.last || b.first == target;
  }
  if (run == &BranchIndexed || run == &Exit) return false;
  return b.first == a.last;
}

size_t Regions::BlockEnd(const std::vector<TraceEntry>& trace, size_t at, uint32_t* block) const {
  size_t stop = at + 1;
  while (stop < trace.size() && trace[stop].pc == trace[stop - 1].pc + 1 && block_of_[trace[stop].pc] == 0) ++stop;
  *block = block_of_[trace[at].pc];
  if (*block != 0 && stop - at != kernel_.blocks[*block - 1].last - kernel_.blocks[*block - 1].first) *block = 0;
  return stop;
}

size_t Regions::End(const std::vector<TraceEntry>& trace, size_t at, bool* whole, std::vector<uint32_t>* key) const {
  uint32_t block = 0, turns = 0;
  size_t stop = BlockEnd(trace, at, &block);
  key->clear();
  *whole = block != 0;
  if (!*whole) return stop;
  key->push_back(block - 1);
  while (stop < trace.size() && key->size() < kMostBlocks) {
    uint32_t next = 0;
    const size_t next_stop = BlockEnd(trace, stop, &next);
    if (next == 0 || next_stop - at > kMostInstructions || !Joins(key->back(), next - 1, &turns)) break;
    key->push_back(next - 1);
    stop = next_stop;
  }
  return stop;
}

}  // namespace kgrpo::simt
