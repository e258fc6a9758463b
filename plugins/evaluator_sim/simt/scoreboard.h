// How long one warp takes from start to end if it had a multiprocessor for itself: the latency that only other warps
// can hide.
//
// Machine code is not in PTX's order: ptxas moves loads up and their uses down. So each basic block's instructions are
// first ordered by a list scheduler (longest path first), then issued in that order, each waiting for its operands.
#ifndef KGRPO_EVALUATOR_SIM_SIMT_SCOREBOARD_H_
#define KGRPO_EVALUATOR_SIM_SIMT_SCOREBOARD_H_

#include <array>
#include <cstdint>
#include <vector>

#include "evaluator_sim/simt/counts.h"
#include "evaluator_sim/simt/program.h"

namespace kgrpo::simt {

// One instruction that a traced warp executed.
struct TraceEntry {
  uint32_t pc;
  bool beyond_l1;  // a load that the L1 did not hold
};

class Scoreboard {
 public:
  // `costs` are the kernel's, after merging (see machine_code.h). All references must outlive this.
  Scoreboard(const Kernel& kernel, const std::vector<Cost>& costs, const Latencies& latencies);

  // The longest chain from the trace's start to the last result.
  BlockLatency Time(const std::vector<TraceEntry>& trace);

 private:
  void Schedule(const BasicBlock& block);
  // What its result waits for, how often; the term is kCount where it is there at once.
  struct Wait {
    LatencyTerm term = LatencyTerm::kCount;
    double times = 0, extra = 0;  // cycles beside the latencies
  };
  Wait WaitOf(uint32_t pc, bool beyond_l1, bool dram) const;
  double Cycles(const Wait& wait) const;

  // One run through the trace, with the L2 or DRAM behind the L1: when everything is ready, and for each instruction
  // issued what it waited for.
  struct Run;
  void Issue(Run& run, uint32_t pc, bool beyond_l1) const;
  LatencyPath Follow(const Run& run) const;

  const Kernel& kernel_;
  const std::vector<Cost>& costs_;
  const std::array<double, kLatencyTerms> latencies_;
  std::vector<uint32_t> block_of_;             // by pc of a block's first instruction: its index + 1
  std::vector<std::vector<uint32_t>> orders_;  // by block: pcs in issue order; empty until needed
};

}  // namespace kgrpo::simt
#endif  // KGRPO_EVALUATOR_SIM_SIMT_SCOREBOARD_H_
