// Schedules the blocks of a launch on the interpreter, and chooses the blocks that run and those that are counted. Used
// by launch.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "simt/check/waits.h"
#include "simt/schedule/block_census.h"
#include "simt/schedule/block_sample.h"
#include "simt/state/machine.h"
#include "simt/time/counter.h"

namespace kgrpo::simt {

// True if a block may wait for a value that another one writes: then all must run.
bool MayPoll(const Kernel& kernel);

class GridRun {
 public:
  // `grid` must outlive this and have its constants patched.
  explicit GridRun(Grid& grid);

  // Throws Fault as handlers do; what has been recorded by then stays.
  void Run();
  // kCounted: fills in what the result says of counts and work.
  void Finish();

 private:
  struct Resident {
    std::unique_ptr<Block> block;
    Counter* counter = nullptr;  // null: not counted
    uint64_t counted = 0;        // warp instructions
    bool checked = false;        // for its first LaunchConfig::checked_instructions
    uint32_t pause = 0;          // length of its last pause, in rounds
    uint32_t paused_for = 0;     // rounds before its next turn
  };
  struct Group {
    Stratum stratum;
    std::unique_ptr<Counter> counter;
  };

  void ChooseCounted();
  void AddGroup(Stratum stratum);
  void ExtendGroup();
  void CheckRoom() const;
  void Start(uint64_t index);
  uint64_t MostCounted() const;
  bool Turn(Resident& resident);
  void End(Resident& resident);
  void RunOthers();
  void RunFurther();
  void RunRepresentatives();
  void RunAlone(uint64_t index, Counter* counter);
  void ChooseChecked();
  void ChooseRepresentatives(const std::vector<BlockClass>* classes);
  void Check(bool on);
  Counter* CounterOf(uint64_t index) const;

  Grid& grid_;
  const uint64_t total_;
  const bool counted_;
  const bool all_;    // every block runs
  const bool turns_;  // blocks take short turns, as many at once as are resident on a GPU
  std::vector<Group> groups_;
  std::unique_ptr<Counter> further_;
  std::unique_ptr<Waits> waits_;                   // if warps may wait for one another
  std::vector<uint64_t> further_blocks_;           // by number
  std::vector<uint64_t> of_each_class_;            // that run uncounted, if they show whether the others are right
  std::unordered_set<uint64_t> ran_;               // by RunAlone
  std::unordered_map<uint64_t, Counter*> counts_;  // by block
  std::vector<uint64_t> order_;                    // in which blocks run; empty where all do
  std::vector<uint64_t> checked_;                  // blocks that are, by number; empty where all are
  std::vector<uint64_t> sampled_work_;             // of counted blocks, as they end
  std::vector<uint64_t> planned_work_;             // by block, where it is known before
  Block alone_;                                    // that runs while no other does
  std::vector<std::unique_ptr<Block>> idle_;
  std::deque<Resident> running_;
};

}  // namespace kgrpo::simt
