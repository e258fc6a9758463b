#include "simt/check/waits.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "simt/check/access_counter.h"
#include "simt/state/handlers.h"

namespace kgrpo::simt {
namespace {

// Cycles of an H200 (bench/results/h200_prices.csv): until a store is visible to a warp that polls ("chain of blocks"),
// between atomics on one address, of one compare-and-swap after another, more for each thread that tries at the same
// time ("compare-and-swap loop"), and for the square of those that wait for a lock ("lock").
constexpr double kVisible = 250, kTurn = 1.43, kSwap = 200, kRival = 0.4, kWaiters = 0.0018;
constexpr double kRelease = 1.4;    // of an atomic's latency, as a fence ("fence")
constexpr double kInstruction = 2;  // cycles; few, as warps that wait for nobody are timed by their counts

uint64_t ValueAt(const Access& access, int lane) {
  uint64_t value = 0;
  std::memcpy(&value, access.At(lane), std::min<size_t>(access.bytes, sizeof value));
  return value;
}

void Advance(Warp& warp) {
  warp.wait.now += kInstruction * static_cast<double>(warp.executed - warp.wait.at);
  warp.wait.at = warp.executed;
}

}  // namespace

// A warp that polls executes the same instruction again, and finds the same values at the same addresses.
bool Waits::Polls(Warp& warp, const Instruction& in, uint32_t mask, const Access& access) {
  WaitState& wait = warp.wait;
  uint64_t place = in.index + 1, found = mask;
  for (const int l : EachBit(mask)) {
    place = (place ^ access.address[l]) * 0x9E3779B97F4A7C15ull;
    found = (found ^ ValueAt(access, l)) * 0x9E3779B97F4A7C15ull;
  }
  if (wait.place != place) {
    wait = {wait.now, wait.at, place, found, warp.executed, wait.now, 0, false};
  } else if (wait.found == found) {
    if (!wait.polls && warp.grid->counter != nullptr) wait.traced = warp.grid->counter->Traced(warp);
    wait.polls = true;
    return true;
  } else {
    if (wait.polls) {  // it has waited for another warp: what it did meanwhile is no work
      if (warp.grid->counter != nullptr) warp.grid->counter->ForgetSince(warp, wait.traced);
      warp.executed = wait.executed;
      wait.now = wait.began;
      wait.at = wait.executed;
    }
    wait.place = 0;
  }
  return false;
}

// Successful compare-and-swaps of one word follow one another: each has seen the one before it.
void Waits::Swap(Warp& warp, const Instruction& in, uint32_t mask, const Access& access, double seen) {
  for (const int l : EachBit(mask)) {
    const uint64_t expected = access.bytes == 8 ? SourceAs<uint64_t>(warp, in.b)[l] : SourceAs<uint32_t>(warp, in.b)[l];
    if (ValueAt(access, l) != expected) continue;
    Word& word = words_[access.address[l]];
    word.swaps += 1;
    word.held += latencies_.atomic + kSwap;
    word.taken = seen;
    word.holder = &warp;
    warp.wait.place = 0;  // it will be tried again as work
    return;               // the other lanes find another value
  }
}

bool Waits::Follow(Warp& warp, const Instruction& in, uint32_t mask, const Access& access, AccessKind kind) {
  const bool atomic = kind == AccessKind::kAtomic, store = kind == AccessKind::kStore;
  const bool is_volatile = (in.flags & kFlagVolatile) != 0, returns = atomic && (in.flags & kFlagNoReturn) == 0;
  // One thread stores, adds or takes a ticket for others to see; what more of them do at once is data, but for a
  // compare-and-swap.
  const bool swaps = atomic && in.c != kNoOperand, polls = kind == AccessKind::kLoad && is_volatile;
  if (access.space != Space::kGlobal || !(swaps || polls || (kind != AccessKind::kLoad && std::has_single_bit(mask))))
    return false;
  Advance(warp);
  if ((returns || polls) && Polls(warp, in, mask, access)) return true;
  WaitState& wait = warp.wait;
  if (store && (in.flags & kFlagRelease) != 0) wait.now += kRelease * latencies_.atomic;
  double seen = wait.now;  // when the L2 serves the access
  for (const int l : EachBit(mask)) {
    if (store) continue;
    const auto found = words_.find(access.address[l]);
    if (found == words_.end()) continue;
    seen = std::max({seen, found->second.released, atomic ? found->second.updated + kTurn : 0});
  }
  const bool exchanges = store || (in.flags & kFlagExchange) != 0;
  if (swaps) Swap(warp, in, mask, access, seen);
  wait.now = seen + (swaps ? latencies_.atomic : polls ? latencies_.l2 : 0);
  for (const int l : EachBit(mask)) {
    if (!store && !atomic) continue;
    Word& word = words_[access.address[l]];
    if (exchanges) word.released = seen + kVisible;
    word.updated = std::max(word.updated, seen);
    if (swaps || word.holder != &warp) continue;
    word.held += std::max(0.0, wait.now - word.taken);  // it was a lock
    word.unlocks += 1;
    word.holder = nullptr;
  }
  if (store) wait.place = 0;
  last_ = std::max(last_, wait.now);
  return false;
}

void Waits::Fence(Warp& warp, const Instruction& in) const {
  Advance(warp);
  warp.wait.now += static_cast<double>(warp.grid->kernel->costs[in.index].waits) * latencies_.atomic;
}

void Waits::Meet(Block& block, uint32_t warps) {
  double last = 0;
  for (const int w : EachBit(warps)) {
    Warp& warp = block.warps[static_cast<size_t>(w)];
    Advance(warp);
    last = std::max(last, warp.wait.now);
  }
  for (const int w : EachBit(warps)) block.warps[static_cast<size_t>(w)].wait.now = last;
}

double Waits::Cycles(double scale, double threads) const {
  double cycles = last_;
  for (const auto& [address, word] : words_) {
    const double rivals = std::min(word.swaps * scale, threads) / 2;
    const double crowd = kRival * word.swaps * rivals + kWaiters * word.unlocks * rivals * rivals;
    cycles = std::max(cycles, scale * (word.held + crowd));
  }
  return cycles;
}

void CountOrFollow(Warp& warp, const Instruction& in, uint32_t mask, const Access& access, AccessKind kind) {
  const Grid& grid = *warp.grid;
  const bool polls = grid.waits != nullptr && grid.waits->Follow(warp, in, mask, access, kind);
  if (grid.counter == nullptr) return;
  if (polls) return grid.counter->MarkBeyondL1(warp, in, false);
  grid.counter->CountAccess(warp, in, mask, access, kind);
}

}  // namespace kgrpo::simt
