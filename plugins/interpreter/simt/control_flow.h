// Finds what the work of a kernel's blocks depends on: nothing that differs among blocks, the block's number, or data.
// Computed once a kernel, from its code. A launch that counts some of its blocks needs it to know which others they
// represent: see block_census.h.
#ifndef KGRPO_INTERPRETER_SIMT_CONTROL_FLOW_H_
#define KGRPO_INTERPRETER_SIMT_CONTROL_FLOW_H_

#include <cstdint>
#include <vector>

namespace kgrpo::simt {

struct Kernel;

// Origins that a value may depend on; each includes those before it.
enum class Origin : uint8_t {
  kThread,  // parameters, constants, the thread's number
  kBlock,   // the block's number
  kData,    // memory, atomics, other lanes, clocks
};

// How the census treats an instruction.
enum class CensusStep : uint8_t {
  kSkip,      // no decision depends on it
  kEvaluate,  // decisions depend on what it computes
  kBranch,    // a branch, or an exit
  kGuarded,   // executed by the lanes of a predicate: which ones is part of what a block does
  kJoin,      // a branch between whose ways blocks cannot differ: goes on where they meet again
};

// The census's action at each pc. The fields are by pc.
struct CensusPlan {
  std::vector<CensusStep> steps;
  std::vector<uint32_t> joins;  // of kJoin: where to go on
};

struct ControlFlow {
  bool by_data = false;   // data decides how much a block does
  bool by_block = false;  // the block's number takes part in a decision
  bool reads_clock = false;
  bool tickets = false;  // by_data, and global atomics return what they found: blocks may share work out among them
  // Empty where by_data. `differences` follows as little as tells which blocks take other decisions than others, `all`
  // all decisions.
  CensusPlan differences, all;
  uint32_t predicate_bytes = 0;  // of a warp's registers the first so many are predicates, four bytes each

  // A branch that data decides, and the few instructions without loops or memory accesses that it may skip: they can
  // add no more to a block than is counted below.
  struct DataBranch {
    uint32_t pc = 0;
    std::vector<uint32_t> region;  // pcs
  };
  std::vector<DataBranch> data_branches;
};

// `kernel` needs code, costs, mentions and blocks, with virtual registers for operands. `starts` says by virtual
// register what those hold that are set when a warp starts, `gives_data` by pc which instructions bring in data, and
// `arithmetic` which ones do nothing but compute.
ControlFlow AnalyseControl(const Kernel& kernel, std::vector<Origin> starts, const std::vector<uint8_t>& gives_data,
                           const std::vector<uint8_t>& arithmetic);

}  // namespace kgrpo::simt
#endif  // KGRPO_INTERPRETER_SIMT_CONTROL_FLOW_H_
