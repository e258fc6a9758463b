// Finds how much work each block of a launch does, from its decisions: only the instructions that branches depend on
// are evaluated, for ranges of blocks at once.
//
// A range on whose decisions all blocks agree is done; else it is halved, down to single blocks, on which intervals are
// exact. So `if (i < n)` costs an evaluation or two, whatever the grid.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "simt/state/machine.h"

namespace kgrpo::simt {

// Blocks from `low` to `high`, in each coordinate.
struct BlockRange {
  std::array<uint32_t, 3> low{}, high{};
  uint64_t Count() const {
    uint64_t count = 1;
    for (size_t i = 0; i < 3; ++i) count *= uint64_t{high[i]} - low[i] + 1;
    return count;
  }
};

// Blocks that take the same decisions.
struct BlockClass {
  uint64_t work = 0;    // warp instructions of each
  uint64_t blocks = 0;  // in the class
  std::vector<BlockRange> ranges;
};

// The classes of the launch's blocks; nothing where it would take too long to tell. For kernels whose control flow
// does not depend on data. `grid` is not changed, nor is memory.
std::optional<std::vector<BlockClass>> TakeCensus(const Grid& grid);

// By block: its work. For launches of up to kMostListed blocks.
inline constexpr uint64_t kMostListed = 1u << 22;
std::vector<uint64_t> WorkByBlock(const Grid& grid, const std::vector<BlockClass>& classes);
// By block: the index of its class.
std::vector<uint32_t> ClassByBlock(const Grid& grid, const std::vector<BlockClass>& classes);

// What all blocks of the launch store to global memory together: by the addresses of their stores, which are evaluated
// without the values. If the addresses are affine in the block's number, so are the places that a range of blocks with
// the same decisions stores to: its corners are evaluated. Else every block is. Nothing if an address depends on data,
// or if it would take too long. `grid` is not changed, nor is memory.
std::optional<std::vector<StoredRange>> StoredByGrid(const Grid& grid);

}  // namespace kgrpo::simt
