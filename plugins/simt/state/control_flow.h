// Finds the origin of the differences in work among a kernel's blocks: none, the block's number, or data. Computed once
// a kernel, from its code. A launch that counts a sample of its blocks uses it to find the blocks that they represent:
// see block_census.h.
#pragma once

#include <cstdint>
#include <vector>

namespace kgrpo::simt {

struct Kernel;

// Origins that a value may depend on; each includes those before it.
enum class Origin : uint8_t {
  kThread,  // parameters, constants, the thread's number
  kAffine,  // the same plus multiples of the block's number (only where addresses are followed)
  kBlock,   // the block's number
  kData,    // memory, atomics, other lanes, clocks
};

// How the census treats an instruction.
enum class CensusStep : uint8_t {
  kSkip,      // no decision depends on it
  kEvaluate,  // decisions depend on what it computes
  kBranch,    // a branch, or an exit
  kGuarded,   // predicated: the set of lanes that execute it is part of the block's work
  kJoin,      // a branch; nothing between its paths differs among blocks: continue at the join
  kStore,     // stores to global memory, at an address that is to be known
};

// The census's action at each pc. The fields are by pc.
struct CensusPlan {
  std::vector<CensusStep> steps;
  std::vector<uint32_t> joins;  // kJoin: the pc where to continue
};

struct ControlFlow {
  bool by_data = false;   // data decides how much a block does
  bool by_block = false;  // a decision depends on the block's number
  bool reads_clock = false;
  bool tickets = false;  // by_data, and global atomics return old values: blocks may distribute work by them
  // Empty if by_data. `differences` holds just enough to tell blocks with different decisions apart, `all` holds every
  // decision.
  CensusPlan differences, all;
  // What the addresses of stores to global memory depend on; kData: there is no plan `stores` that finds them.
  Origin stored_at = Origin::kData;
  CensusPlan stores;
  // Blocks that take the same decisions do the same to the data that they load; only where these and the results lie
  // differs, evenly with the block's number. So one of them shows whether the others are right (alike_blocks.cc).
  bool alike = false;
  uint32_t predicate_bytes = 0;  // per warp: the registers' first bytes hold the predicates, four bytes each

  // A branch on data that may skip a few instructions without loops or memory accesses. They bound the work that a
  // block may have beyond what was counted.
  struct DataBranch {
    uint32_t pc = 0;
    std::vector<uint32_t> region;  // pcs
  };
  std::vector<DataBranch> data_branches;
};

// The use that an instruction makes of memory.
enum class Transfer : uint8_t {
  kNone,
  kLoads,   // a = address
  kStores,  // a = address; the other sources are values. Atomics too
  kCopies,  // a = address in shared memory, b = in global memory
};

// An instruction in the words of the analyses.
struct Nature {
  bool gives_data = false;  // it brings in data
  bool arithmetic = false;  // it only computes
  bool stores = false;      // to global memory
  Transfer transfer = Transfer::kNone;
};

// `kernel` needs code, costs, mentions and blocks, with virtual registers as operands. `starts`: the origin of each
// virtual register that is set when a warp starts. `natures` is by pc.
ControlFlow AnalyseControl(const Kernel& kernel, std::vector<Origin> starts, const std::vector<Nature>& natures);

// alike_blocks.cc: ControlFlow::alike; `flow` is the rest.
bool BlocksAreAlike(const Kernel& kernel, const ControlFlow& flow, std::vector<Origin> starts,
                    const std::vector<Nature>& natures);

}  // namespace kgrpo::simt
