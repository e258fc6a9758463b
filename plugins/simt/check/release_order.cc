// Order through memory in checked launches: fences, releases and acquires. See race_shadow.h.
#include <algorithm>

#include "simt/check/access.h"

namespace kgrpo::simt {
namespace {

// Returns true if a release or an acquire there orders accesses of one block only.
bool IsWithinBlock(const Instruction& in, const Access& access) {
  return access.space == Space::kShared || (in.flags & kFlagBlockScope) != 0;
}

// Calls f with the number of each word that the lanes access.
template <typename Function>
void ForWords(uint32_t mask, const Access& access, Function f) {
  for (const int lane : EachBit(access.distinct & mask)) {
    for (uint64_t word = access.address[lane] / 4; word <= (access.address[lane] + access.bytes - 1) / 4; ++word)
      f(word);
  }
}

// Releases what the warp's last fence covers to other warps of its block. `continues`: an atomic operation, which
// leaves what others released there.
void ReleaseInBlock(Warp& warp, uint32_t mask, const Access& access, bool continues, uint64_t now) {
  auto& published = warp.block->published;
  for (const int lane : EachBit(access.distinct & mask)) {
    Announced& at = published[access.address[lane]];
    if (!continues) at = {};
    at.Join(warp.fenced_in_block.known, warp.fenced_in_block.times);
    at.times.observed = std::max(at.times.observed, now);
  }
}

// Releases to other blocks.
void ReleaseInGrid(const Warp& warp, uint32_t mask, const Access& access, uint64_t now) {
  Grid& grid = *warp.grid;
  std::vector<std::vector<Released>>& released = grid.released[warp.block->index];
  released.resize(grid.agents);
  for (size_t w = 0; w < grid.agents; ++w) {
    const uint32_t covered = warp.known[grid.agents + w];
    if (covered > (released[w].empty() ? 0 : released[w].back().clock)) released[w].push_back({covered, now});
  }
  ForWords(mask, access, [&](uint64_t word) { grid.release_times[word] = now; });
}

}  // namespace

void Learn(Warp& warp, const Announced& announced) {
  for (size_t w = 0; w < announced.known.size(); ++w) {
    if (w != static_cast<size_t>(warp.id)) warp.known[w] = std::max(warp.known[w], announced.known[w]);
  }
  warp.times.Join(announced.times);
}

void NoteFence(Warp& warp, bool within_block) {
  const size_t agents = warp.grid->agents, own = static_cast<size_t>(warp.id);
  ++warp.clock;
  warp.fenced_in_block.known = warp.known;
  warp.fenced_in_block.known[own] = warp.clock;
  warp.fenced_in_block.times = warp.times;
  if (within_block) return;
  for (size_t w = 0; w < agents; ++w) warp.known[agents + w] = std::max(warp.known[agents + w], warp.known[w]);
  warp.known[agents + own] = warp.clock;
  warp.fenced = true;
}

void NoteProxyFence(Warp& warp) {
  const size_t agents = warp.grid->agents, own = static_cast<size_t>(warp.id);
  for (size_t w = 0; w < agents; ++w) warp.known[2 * agents + w] = std::max(warp.known[2 * agents + w], warp.known[w]);
  warp.known[2 * agents + own] = ++warp.clock;
}

void NoteRelease(Warp& warp, const Instruction& in, uint32_t mask, const Access& access, bool is_atomic) {
  warp.releases = 0;
  if (access.space != Space::kShared && access.space != Space::kGlobal) return;
  const bool within_block = IsWithinBlock(in, access);
  if ((in.flags & kFlagRelease) != 0) NoteFence(warp, within_block);
  const std::vector<uint32_t>& fenced = warp.fenced_in_block.known;
  const auto own = static_cast<size_t>(warp.id);
  // Within the block a fence of any scope counts. What other blocks may acquire, those of this block acquire, too.
  const bool in_block = !fenced.empty() && (within_block || fenced[own] > warp.known[warp.grid->agents + own]);
  const bool in_grid = !within_block && warp.fenced;
  if (!is_atomic && !in_block && !warp.block->published.empty()) {
    for (const int lane : EachBit(access.distinct & mask)) warp.block->published.erase(access.address[lane]);
  }
  if (!in_block && !in_grid) return;
  const uint64_t now = ++warp.grid->time;
  warp.releases = static_cast<uint32_t>(now);
  if (in_block) ReleaseInBlock(warp, mask, access, is_atomic, now);
  if (in_grid) ReleaseInGrid(warp, mask, access, now);
}

void NoteAcquire(Warp& warp, const Instruction& in, uint32_t mask, const Access& access) {
  const Grid& grid = *warp.grid;
  const auto& published = warp.block->published;
  if (!published.empty() && (access.space == Space::kShared || access.space == Space::kGlobal)) {
    for (const int lane : EachBit(access.distinct & mask)) {
      if (const auto found = published.find(access.address[lane]); found != published.end()) Learn(warp, found->second);
    }
  }
  if (access.space != Space::kGlobal || IsWithinBlock(in, access) || grid.release_times.empty()) return;
  ForWords(mask, access, [&](uint64_t word) {
    if (const auto found = grid.release_times.find(word); found != grid.release_times.end())
      warp.times.Join({found->second, found->second});
  });
}

}  // namespace kgrpo::simt
