#include "simt/schedule/block_census.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>
#include <utility>

#include "simt/schedule/interval_ops.h"
#include "simt/state/handlers.h"

namespace kgrpo::simt {
namespace {

// Limits: instructions evaluated, and the fixed cost of a range and an evaluation in instructions; some 50 ms in all. A
// launch that exceeds them gets no census.
constexpr uint64_t kMostSteps = 32'000'000, kStepsToStart = 200, kStepsOfEvaluation = 8;
// The same for addresses of stores; and a limit of the places that are kept.
constexpr uint64_t kMostStoreSteps = 64'000'000;
constexpr size_t kMostPlaces = size_t{1} << 22;

class Census {
 public:
  Census(const Grid& grid, const CensusPlan& plan)
      : kernel_(*grid.kernel), registers_(kernel_), stop_(kernel_.code.size()) {
    grid_.kernel = grid.kernel;
    grid_.code = grid.kernel->code.data();
    grid_.config = grid.config;
    grid_.program = grid.program;
    grid_.constants = grid.constants;
    grid_.warps_per_block = grid.warps_per_block;
    grid_.result = &result_;
    grid_.coverage.edges.resize(EdgePlaces(*grid.kernel));
    Follow(plan);
  }

  // `trimmed`: a bit for each coordinate in which the range has lost its edges.
  bool Visit(const BlockRange& range, uint8_t trimmed) {
    Seen seen;
    if (!Evaluate(range, &seen)) return false;
    if (!seen.undecided) {
      BlockClass& one = classes_[seen.trace];
      one.blocks += range.Count();
      one.ranges.push_back(range);
      return true;
    }
    size_t longest = 3;
    for (const bool any : {false, true}) {
      for (size_t i = 0; i < 3 && (longest == 3 || !any); ++i) {
        if (range.high[i] == range.low[i] || (!any && ((seen.depends >> i) & 1) == 0)) continue;
        if (longest == 3 || range.high[i] - range.low[i] > range.high[longest] - range.low[longest]) longest = i;
      }
    }
    if (longest == 3) return false;  // a single block is always decided
    // Blocks most often differ at the edges of a grid, so the edges are split off first.
    const auto bit = static_cast<uint8_t>(1 << longest);
    const uint32_t low = range.low[longest], high = range.high[longest];
    const auto part = [&](uint32_t first, uint32_t last) {
      BlockRange one = range;
      one.low[longest] = first;
      one.high[longest] = last;
      return Visit(one, static_cast<uint8_t>(trimmed | bit));
    };
    if ((trimmed & bit) == 0 && high - low > 2) return part(low, low) && part(low + 1, high - 1) && part(high, high);
    const uint32_t middle = low + (high - low) / 2;
    return part(low, middle) && part(middle + 1, high);
  }

  // Finds the work of each class by evaluating one of its blocks. Call it after Visit.
  bool Weigh() {
    Follow(kernel_.control.all);
    steps_ = 0;
    for (auto& [trace, one] : classes_) {
      Seen seen;
      BlockRange single = one.ranges.front();
      single.high = single.low;
      if (!Evaluate(single, &seen) || seen.undecided) return false;
      one.work = seen.work;
    }
    return true;
  }

  // Appends what a block stores, in order; false: it takes too long.
  bool AddStored(const std::array<uint32_t, 3>& block, std::vector<StoredRange>* stored) {
    Seen seen;
    stored_ = stored;
    const bool done = Evaluate({block, block}, &seen);
    stored_ = nullptr;
    return done && stored->size() <= kMostPlaces;
  }

  std::vector<BlockClass> Classes() {
    std::vector<BlockClass> classes;
    for (auto& [trace, one] : classes_) classes.push_back(std::move(one));
    return classes;
  }

 private:
  struct Seen {
    uint64_t trace = 0, work = 0;
    bool undecided = false;
    uint8_t depends = 0;  // the coordinates on which the undecided branches depend
  };

  void Follow(const CensusPlan& plan) {
    plan_ = &plan;
    auto stop = static_cast<uint32_t>(stop_.size());
    for (uint32_t pc = stop; pc-- > 0;) {
      if (plan.steps[pc] != CensusStep::kSkip) stop = pc;
      stop_[pc] = stop;
    }
  }

  static void Mix(uint64_t* trace, uint64_t value) {
    *trace = (*trace ^ value) * 0x9E3779B97F4A7C15ull;
    *trace ^= *trace >> 29;
  }

  // False: it takes too long.
  bool Evaluate(const BlockRange& range, Seen* seen) {
    const Dim3& shape = grid_.config->grid;
    single_ = range.low == range.high;
    StartBlock(block_, grid_, range.low[0] + (uint64_t{range.low[2]} * shape.y + range.low[1]) * shape.x);
    for (Warp& warp : block_.warps) {
      registers_.Clear();
      for (const SpecialSlot& slot : kernel_.specials) {
        const auto i = static_cast<size_t>(slot.kind) - static_cast<size_t>(SpecialSlot::Kind::kCtaX);
        if (i < 3 && range.low[i] != range.high[i])
          registers_.SetRange(static_cast<Operand>(slot.at), range.low[i], range.high[i], static_cast<uint8_t>(1 << i));
      }
      steps_ += kStepsToStart;
      if (!Run(warp, seen)) return false;
      if (seen->undecided) return true;
      Mix(&seen->trace, seen->work);
    }
    return true;
  }

  bool Undecided(Operand on, Seen* seen) const {
    seen->undecided = true;
    seen->depends = registers_.DependsOn(on);
    return true;
  }

  bool Run(Warp& warp, Seen* seen) {
    for (;;) {
      if (warp.pc >= warp.limit && !Reschedule(warp)) return true;
      const uint32_t pc = warp.pc;
      const CensusStep step = plan_->steps[pc];
      if (step == CensusStep::kSkip) {
        const uint32_t next = std::min(stop_[pc], warp.limit);
        seen->work += next - pc;
        warp.pc = next;
        ++steps_;
        continue;
      }
      const Instruction& in = kernel_.code[pc];
      ++seen->work;
      if (step == CensusStep::kJoin) {
        warp.pc = plan_->joins[pc];
        ++steps_;
        continue;
      }
      if (!registers_.Agrees(in.predicate, warp.active)) return Undecided(in.predicate, seen);
      const uint32_t mask = warp.active & (PredicateOf(warp, in.predicate) ^ in.flip);
      ++warp.pc;
      if (step == CensusStep::kEvaluate) {
        steps_ += stored_ != nullptr ? 1 : kStepsOfEvaluation;
        if (!single_) registers_.Execute(warp, in, mask);
        if (single_ && mask != 0) in.run(warp, in, mask);
        continue;
      }
      if (step == CensusStep::kStore && stored_ != nullptr && mask != 0) {
        Store(warp, in, mask);
        steps_ += kStepsOfEvaluation;
      }
      if (step == CensusStep::kBranch) {
        if (in.run == &BranchIndexed && !registers_.AgreesOnValue(in.a)) return Undecided(in.a, seen);
        if (mask != 0) in.run(warp, in, mask);
      }
      Mix(&seen->trace, uint64_t{pc} << 32 | mask);
      if (++steps_ > (stored_ != nullptr ? kMostStoreSteps : kMostSteps)) return false;
    }
  }

  // Notes the places of a store. Neighbouring lanes are taken together: they stay neighbours wherever the result is the
  // same but for its place.
  void Store(const Warp& warp, const Instruction& in, uint32_t mask) {
    const auto note = [&](uint64_t address, uint64_t bytes) {
      if (static_cast<Space>(in.space) == Space::kGeneric && in.run != &StoreBulk && address >= kSharedWindow) return;
      if (!stored_->empty() && stored_->back().end == address) {
        stored_->back().end += bytes;
      } else if (stored_->empty() || stored_->back().begin != address || stored_->back().end != address + bytes) {
        stored_->push_back({address, address + bytes});
      }
    };
    if (ForWmmaStored(warp, in, note)) return;
    const bool bulk = in.run == &StoreBulk;
    const uint64_t* address = SourceAs<uint64_t>(warp, bulk ? in.b : in.a);
    const uint64_t offset =
        bulk ? *SourceAs<uint64_t>(warp, kernel_.operands[in.extra]) : static_cast<uint64_t>(in.offset);
    for (const int l : EachBit(mask)) {
      note(address[l] + offset, bulk ? SourceAs<uint32_t>(warp, in.c)[l] : uint64_t{in.size} * in.count);
    }
  }

  Grid grid_;  // its own, without memory: the evaluation has no outside effects
  const Kernel& kernel_;
  const CensusPlan* plan_ = nullptr;
  LaunchResult result_;
  IntervalRegisters registers_;
  std::vector<uint32_t> stop_;  // by pc: the next instruction that is not skipped
  Block block_;
  bool single_ = false;                         // the range that is evaluated is one block
  std::vector<StoredRange>* stored_ = nullptr;  // what it stores, where wanted
  uint64_t steps_ = 0;
  std::map<uint64_t, BlockClass> classes_;  // by trace
};

template <typename T, typename Value>
std::vector<T> ByBlock(const Grid& grid, const std::vector<BlockClass>& classes, Value value) {
  const Dim3& shape = grid.config->grid;
  std::vector<T> all(shape.Count());
  for (size_t i = 0; i < classes.size(); ++i) {
    for (const BlockRange& range : classes[i].ranges) {
      for (uint64_t z = range.low[2]; z <= range.high[2]; ++z) {
        for (uint64_t y = range.low[1]; y <= range.high[1]; ++y) {
          const auto row = all.begin() + static_cast<std::ptrdiff_t>((z * shape.y + y) * shape.x);
          std::fill(row + range.low[0], row + static_cast<std::ptrdiff_t>(range.high[0]) + 1, value(i));
        }
      }
    }
  }
  return all;
}

using Stored = std::vector<StoredRange>;

// Puts ranges in order and joins those that touch.
void Join(Stored* ranges) {
  std::sort(ranges->begin(), ranges->end(),
            [](const StoredRange& a, const StoredRange& b) { return a.begin < b.begin; });
  size_t kept = 0;
  for (const StoredRange& one : *ranges) {
    if (kept > 0 && one.begin <= (*ranges)[kept - 1].end) {
      (*ranges)[kept - 1].end = std::max((*ranges)[kept - 1].end, one.end);
    } else {
      (*ranges)[kept++] = one;
    }
  }
  ranges->resize(kept);
}

// Adds the copies of `places` that are `step` apart (a signed number), `count` in all; false: too many.
bool Repeat(uint64_t step, uint64_t count, Stored* places) {
  Stored all;
  const bool back = static_cast<int64_t>(step) < 0;
  const uint64_t apart = back ? -step : step;
  for (const StoredRange& one : *places) {
    const uint64_t first = back ? one.begin - (count - 1) * apart : one.begin, bytes = one.end - one.begin;
    if (apart <= bytes) {
      all.push_back({first, first + (count - 1) * apart + bytes});
      continue;
    }
    if (all.size() + count > kMostPlaces) return false;
    for (uint64_t i = 0; i < count; ++i) all.push_back({first + i * apart, first + i * apart + bytes});
  }
  Join(&all);
  *places = std::move(all);
  return true;
}

// Adds what the blocks of a range store, which take the same decisions, and whose addresses are affine in the block's
// number but where they wrap around. The corners show whether they do: no place moves evenly to all of them then.
bool AddStoredByRange(Census& census, const BlockRange& range, Stored* stored) {
  Stored first;
  if (!census.AddStored(range.low, &first)) return false;
  std::array<Stored, 3> next;
  for (size_t i = 0; i < 3; ++i) {
    std::array<uint32_t, 3> block = range.low;
    if (block[i] != range.high[i]) ++block[i];
    if (!census.AddStored(block, &next[i]) || next[i].size() != first.size()) return false;
  }
  for (uint32_t corner = 0; corner < 8; ++corner) {
    std::array<uint32_t, 3> block = range.low;
    for (size_t i = 0; i < 3; ++i)
      if (((corner >> i) & 1) != 0) block[i] = range.high[i];
    Stored there;
    if (!census.AddStored(block, &there) || there.size() != first.size()) return false;
    for (size_t k = 0; k < there.size(); ++k) {
      uint64_t begin = first[k].begin;
      for (size_t i = 0; i < 3; ++i) begin += (block[i] - range.low[i]) * (next[i][k].begin - first[k].begin);
      if (there[k].begin != begin || there[k].end - begin != first[k].end - first[k].begin) return false;
    }
  }
  std::map<std::array<uint64_t, 3>, Stored> by_steps;
  for (size_t k = 0; k < first.size(); ++k) {
    std::array<uint64_t, 3> steps;
    for (size_t i = 0; i < 3; ++i) steps[i] = next[i][k].begin - first[k].begin;
    by_steps[steps].push_back(first[k]);
  }
  for (auto& [steps, places] : by_steps) {
    Join(&places);
    std::array<size_t, 3> order{0, 1, 2};  // the shortest step first: its copies touch most often
    std::sort(order.begin(), order.end(), [&steps = steps](size_t a, size_t b) {
      return std::abs(static_cast<int64_t>(steps[a])) < std::abs(static_cast<int64_t>(steps[b]));
    });
    for (const size_t i : order)
      if (!Repeat(steps[i], uint64_t{range.high[i]} - range.low[i] + 1, &places)) return false;
    stored->insert(stored->end(), places.begin(), places.end());
  }
  return true;
}

bool AddStoredByEach(Census& census, const BlockRange& range, Stored* stored) {
  for (uint32_t z = range.low[2]; z <= range.high[2]; ++z) {
    for (uint32_t y = range.low[1]; y <= range.high[1]; ++y) {
      for (uint32_t x = range.low[0]; x <= range.high[0]; ++x) {
        if (!census.AddStored({x, y, z}, stored)) return false;
        if (stored->size() <= kMostPlaces / 2) continue;
        Join(stored);
        if (stored->size() > kMostPlaces / 4) return false;
      }
    }
  }
  return true;
}

}  // namespace

std::optional<std::vector<StoredRange>> StoredByGrid(const Grid& grid) {
  const ControlFlow& control = grid.kernel->control;
  if (control.by_data || control.stored_at == Origin::kData) return std::nullopt;
  Census census(grid, control.stores);
  const Dim3& shape = grid.config->grid;
  const BlockRange whole{{0, 0, 0}, {shape.x - 1, shape.y - 1, shape.z - 1}};
  Stored stored;
  try {
    std::vector<BlockRange> ranges;
    if (control.stored_at <= Origin::kAffine && census.Visit(whole, 0)) {
      for (const BlockClass& one : census.Classes()) ranges.insert(ranges.end(), one.ranges.begin(), one.ranges.end());
    }
    for (const BlockRange& range : ranges) {
      const size_t known = stored.size();
      if (AddStoredByRange(census, range, &stored)) continue;
      stored.resize(known);
      if (!AddStoredByEach(census, range, &stored)) return std::nullopt;
    }
    if (ranges.empty() && !AddStoredByEach(census, whole, &stored)) return std::nullopt;
  } catch (const Fault&) {
    return std::nullopt;
  }
  Join(&stored);
  return stored;
}

std::optional<std::vector<BlockClass>> TakeCensus(const Grid& grid) {
  Census census(grid, grid.kernel->control.differences);
  const Dim3& shape = grid.config->grid;
  try {
    if (!census.Visit({{0, 0, 0}, {shape.x - 1, shape.y - 1, shape.z - 1}}, 0) || !census.Weigh()) return std::nullopt;
  } catch (const Fault&) {  // a branch outside of its table: the launch will say so
    return std::nullopt;
  }
  return census.Classes();
}

std::vector<uint64_t> WorkByBlock(const Grid& grid, const std::vector<BlockClass>& classes) {
  return ByBlock<uint64_t>(grid, classes, [&](size_t i) { return classes[i].work; });
}

std::vector<uint32_t> ClassByBlock(const Grid& grid, const std::vector<BlockClass>& classes) {
  return ByBlock<uint32_t>(grid, classes, [](size_t i) { return static_cast<uint32_t>(i); });
}

}  // namespace kgrpo::simt
