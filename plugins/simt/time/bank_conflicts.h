// Cycles that shared memory needs to serve a warp's access. Used by the counter.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "simt/state/machine.h"

namespace kgrpo::simt {

// The cycles that the 32 banks need for the lanes of `mask`: how many different words the busiest bank must deliver.
uint32_t BankCycles(const uint64_t* address, uint32_t mask, uint32_t bytes);

// Returns the cycles in which a load returns to the registers: 128 bytes a cycle, or 256 if every lane n has the
// address of lane n ^ 1, or every lane that of lane n ^ 2 (NVIDIA's developer forum, "Unexpected shared memory bank
// conflict", 77228). The number of different bytes read does not matter.
uint32_t ReturnCycles(const uint64_t* address, uint32_t mask, uint32_t bytes);

// Wavefronts of loads and stores. Loops repeat an access with all addresses moved by the same amount, which turns the
// banks and changes nothing: so the last answer is kept for each instruction.
class BankConflicts {
 public:
  explicit BankConflicts(size_t instructions) : kept_at_(instructions, 0) {}

  // Returns the cycles of `bytes` (1 to 16) at each lane's address. `pc`: the instruction, which is either always a
  // load or never.
  uint32_t Wavefronts(uint32_t pc, const uint64_t* address, uint32_t mask, uint32_t bytes, bool load);

 private:
  struct Kept {
    uint32_t mask = 0, bytes = 0, wavefronts = 0;
    std::array<uint32_t, kLanes> offset;  // from the first lane's word
  };
  std::vector<uint32_t> kept_at_;  // by pc: 1 + the place in kept_
  std::vector<Kept> kept_;
};

}  // namespace kgrpo::simt
