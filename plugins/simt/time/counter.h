// Counts what the time model needs while sampled blocks run. See counts.h for what each figure means.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "simt/check/access_counter.h"
#include "simt/state/counts.h"
#include "simt/state/machine.h"
#include "simt/time/bank_conflicts.h"
#include "simt/time/machine_code.h"
#include "simt/time/scoreboard.h"
#include "simt/time/sector_cache.h"

namespace kgrpo::simt {

class Counter final : public AccessCounter {
 public:
  explicit Counter(Grid& grid);
  ~Counter() override;

  // Around each sampled block.
  void StartBlock(Block& block);
  // `counted`: the block's counted instructions; fewer than executed if the block has too many.
  void FinishBlock(Block& block, uint64_t counted);

  // Each instruction that a warp issues, with the lanes that execute it.
  void CountInstruction(const Warp& warp, uint32_t pc, uint32_t mask) {
    ++executed_[pc];
    lanes_[pc] += mask == kAllLanes ? kLanes : static_cast<uint32_t>(std::popcount(mask));
    std::vector<TraceEntry>& entries = trace_->entries[static_cast<size_t>(warp.id)];
    if (entries.size() < most_traced_) entries.push_back({pc, 0, 0});
  }
  void CountAccess(Warp& warp, const Instruction& in, uint32_t mask, const Access& access, AccessKind kind) override;
  void CountTimes(const Warp& warp, const Instruction& in, uint32_t times) override;
  size_t Traced(const Warp& warp) const override { return trace_->entries[static_cast<size_t>(warp.id)].size(); }
  void ForgetSince(const Warp& warp, size_t traced) override;
  void MarkBeyondL1(const Warp& warp, const Instruction& in, bool first) override;
  // counter_bulk.cc
  void CountAsyncArrival(const Instruction& in, uint32_t barrier) override;
  void CountBulk(Warp& warp, const Instruction& in, const BulkCopy& copy, bool another) override;
  void CountArrival(uint32_t barrier) override;
  void CountWait(const Warp& warp, const Instruction& in, uint32_t barrier) override;
  void ForgetPoll(const Warp& warp, const Instruction& in, uint32_t mask) override;

  // Makes `block` the current block of the counts.
  void Switch(const Block& block) { trace_ = &traces_[block.index]; }

  // Sets the number of blocks that the counted blocks represent; by default the whole launch.
  void StandsFor(uint64_t blocks) { counts_.grid_blocks = blocks; }
  // Returns the most work that data may add to other blocks, as a fraction of the warp instructions executed here.
  double DataSlack() const;

  Counts Finish();

 private:
  static constexpr size_t kMostTraced = 1 << 16, kMostTracedOfBlock = 1 << 19;  // instructions
  static constexpr uint32_t kRegistersToYield = 16;  // loaded registers per turn; as in scoreboard_schedule.cc

  static constexpr uint32_t kCombinedLines = 4;  // for each warp of a block: lines that combine stores

  // Cycles of shared memory that a warp's operation on an mbarrier takes: measured on an H100 with 32 warps.
  static constexpr double kMbarrierArrival = 2.2, kMbarrierWait = 7.8;

  // State of one array while blocks run.
  struct Array {
    ArrayTraffic traffic;
    uint64_t sectors = 0;
    // By sector: 1 + number of the block that touched it last.
    uint32_t* loaded_by = nullptr;
    uint32_t* stored_by = nullptr;
    uint32_t* stored_bytes = nullptr;  // those that block stored_by has written: a bit each
    // By 64 bytes, two words each: 1 + number of the block that fetched or wrote them last, and when.
    uint32_t* last_touch = nullptr;
  };
  // An mbarrier's bulk loads: the size of BlockTrace::copies when the last load was issued, and when the last load that
  // has arrived was issued.
  struct Awaited {
    uint32_t issued = 0, arrived = 0;
  };
  // A line whose stores the L1 combines before it sends them to the L2: the bytes written, a bit each.
  struct Stored {
    ArrayTraffic* traffic = nullptr;  // null: none
    uint64_t line = 0;
    std::array<uint32_t, 4> bytes{};  // by sector
  };
  struct BlockTrace {
    std::vector<std::vector<TraceEntry>> entries;   // by warp
    std::vector<std::vector<TraceCopy>> copies;     // by warp: bulk loads that any warp of the block issued
    std::unordered_map<uint32_t, Awaited> awaited;  // by mbarrier
    uint32_t number = 0;
    uint32_t loads = 0;          // registers loaded since the last change of warps
    bool unordered = true;       // true if a store needs to wait for none of these
    uint32_t touched_lines = 0;  // touched beyond the L1 so far
    std::vector<SectorCache> caches;
    std::vector<Stored> stored;  // a ring of lines
    size_t next_stored = 0;      // the oldest
    double issued_before = 0;
  };

  void TraceCopies(uint32_t pc);
  double IssuedSoFar() const;
  std::vector<size_t> TypicalWarps(const Block& block) const;

  // counter_lines.cc
  void CountLines();

  // counter_reuse.cc
  void ChangeWarps(Warp& warp);
  void CountReuse(Array& array, DeviceAddress start, uint64_t line, uint32_t sectors, bool load);

  // counter_atomics.cc
  void CountGlobalAtomic(const Instruction& in, uint32_t mask, const Access& access, DeviceAddress start);
  void CountSharedAtomic(const Instruction& in, uint32_t mask, const Access& access);
  void FindBusiestAtomics();

  // counter_memory.cc
  void CountGlobal(Warp& warp, const Instruction& in, uint32_t mask, const Access& access, AccessKind kind);
  bool TouchSectors(Array& array, DeviceAddress start, uint64_t line, uint32_t sectors, bool load);
  uint32_t CountStored(Array& array, DeviceAddress start, uint32_t mask, const Access& access);
  uint32_t Send(const Stored& stored);
  void CountShared(const Instruction& in, uint32_t mask, const Access& access, AccessKind kind);
  void CountLocal(const Warp& warp, const Instruction& in, uint32_t mask, const Access& access, AccessKind kind);
  void CountConstant(const Warp& warp, const Instruction& in, uint32_t mask, const Access& access);
  void AddSharedWavefronts(const Instruction& in, const Access& access, uint32_t mask, uint32_t bytes, bool load);
  bool CountMergedLoad(const Instruction& in, uint32_t mask, const Access& access);
  uint32_t SharedWavefronts(const Instruction& in, const Access& access, uint32_t mask, uint32_t bytes, bool load);
  Array& ArrayOf(const Warp& warp, uint64_t address, const Access& access);

  Grid& grid_;
  Counts counts_;
  const MachineCode code_;
  std::vector<uint64_t> executed_, lanes_;
  std::vector<uint64_t> repeats_;        // by pc: times beyond the first of each execution, see CountTimes
  std::vector<Demand> demands_;          // by pc; what follows from executed_ is added at the end
  std::vector<uint8_t> leader_aligned_;  // by leader of merged loads: whether its last access was aligned to the vector
  BankConflicts bank_conflicts_;
  Scoreboard scoreboard_;
  std::vector<double> chain_;  // by pc: cycles of one trace's longest chain
  std::unordered_map<uint64_t, BlockTrace> traces_;
  BlockTrace* trace_ = nullptr;
  std::map<DeviceAddress, Array> arrays_;
  // Atomics on 256 bytes, which one unit of the L2 serves.
  static constexpr uint64_t kAtomicPart = 256, kAtomicPeriod = 1024;
  struct AtomicPart {
    double turns = 0, turns_by_warp = 0;  // as they are, and if lanes at one address added up first
    bool is_float = false;
    uint32_t block = 0;           // the last one that touched it
    uint32_t blocks = 0;          // number of sampled blocks that touched it
    uint8_t of_block = 0;         // sectors touched by the last block
    uint8_t of_all = 0;           // sectors touched by any block
    double sectors_by_block = 0;  // sum over blocks of the sectors that each touched
  };
  std::unordered_map<uint64_t, AtomicPart> atomic_parts_;
  uint32_t blocks_ = 0;
  double work_ = 0, counted_work_ = 0;          // warp instructions of the blocks: all, and the counted ones
  const size_t most_traced_;                    // per warp
  std::vector<std::vector<TraceEntry>> spare_;  // room of blocks that have ended
};

}  // namespace kgrpo::simt
