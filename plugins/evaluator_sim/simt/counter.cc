#include "evaluator_sim/simt/counter.h"
namespace kgrpo::simt {
Counter::Counter(Grid& grid) : grid_(grid) {}
void Counter::StartBlock(Block&) {}
void Counter::FinishBlock(Block&) {}
void Counter::CountInstruction(Warp&, uint32_t, uint32_t) {}
void Counter::CountAccess(Warp&, const Instruction&, uint32_t, const Access&, AccessKind) {}
Counts Counter::Finish() {
  return counts_;
}
}  // namespace kgrpo::simt
