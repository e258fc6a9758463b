// Finds the constants that limit a launch's grid, as in `min(blocks, 1024)`: beyond them a kernel's loop over its work
// repeats, so a drafted problem should have a size there. Used by problem_text.cc.
#ifndef KGRPO_TOOLS_DRAFT_GRID_CAPS_H
#define KGRPO_TOOLS_DRAFT_GRID_CAPS_H

#include <cstdint>
#include <vector>

#include "cuda_source/declarations.h"
#include "draft/draft.h"

namespace kgrpo::evaluator {

struct GridCaps {
  std::vector<int64_t> blocks;  // each limit; at most two
  int64_t threads = 1;          // of a block, if a constant says so
};

GridCaps FindGridCaps(const CudaSource& source, const Draft& draft);

}  // namespace kgrpo::evaluator

#endif
