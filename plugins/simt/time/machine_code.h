// Models what ptxas does to a kernel's PTX, as far as it changes the cost of instructions. Used by counter.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "simt/state/program.h"

namespace kgrpo::simt {

// All by pc.
struct MachineCode {
  std::vector<Cost> costs;
  std::vector<uint8_t> merged_into_wide;  // bytes of the vector load that the loads from here on merge into, or 0
  std::vector<uint32_t> merged_leader;    // the pc of the first of them + 1, or 0
};

MachineCode TowardsMachineCode(const Kernel& kernel);

}  // namespace kgrpo::simt
