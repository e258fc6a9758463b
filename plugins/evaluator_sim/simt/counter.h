// Counts what the time model needs while sampled blocks run. See counts.h for what each figure means.
#ifndef KGRPO_EVALUATOR_SIM_SIMT_COUNTER_H_
#define KGRPO_EVALUATOR_SIM_SIMT_COUNTER_H_

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "evaluator_sim/simt/access.h"
#include "evaluator_sim/simt/counts.h"
#include "evaluator_sim/simt/machine.h"

namespace kgrpo::simt {

class Counter {
 public:
  explicit Counter(Grid& grid);

  // Around each sampled block.
  void StartBlock(Block& block);
  void FinishBlock(Block& block);
  // Each instruction that runs, with its lanes.
  void CountInstruction(Warp& warp, uint32_t pc, uint32_t mask);
  // Each memory access.
  void CountAccess(Warp& warp, const Instruction& in, uint32_t mask, const Access& access, AccessKind kind);
  // The sums.
  Counts Finish();

 private:
  struct Array;
  void CountGlobal(Warp& warp, const Instruction& in, uint32_t mask, const Access& access, AccessKind kind);
  void CountShared(Warp& warp, const Instruction& in, uint32_t mask, const Access& access, AccessKind kind);

  Grid& grid_;
  Counts counts_;
  std::vector<uint64_t> executed_;
};

}  // namespace kgrpo::simt
#endif  // KGRPO_EVALUATOR_SIM_SIMT_COUNTER_H_
