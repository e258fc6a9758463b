#include "interpreter/simt/block_census.h"

#include <algorithm>
#include <map>

#include "interpreter/simt/handlers.h"
#include "interpreter/simt/interval_ops.h"

namespace kgrpo::simt {
namespace {

// Limits: instructions evaluated, and the fixed cost of a range and an evaluation in instructions; some 50 ms in all. A
// launch that exceeds them gets no census.
constexpr uint64_t kMostSteps = 32'000'000, kStepsToStart = 200, kStepsOfEvaluation = 8;

class Census {
 public:
  explicit Census(const Grid& grid) : kernel_(*grid.kernel), registers_(kernel_), stop_(kernel_.code.size()) {
    grid_.kernel = grid.kernel;
    grid_.code = grid.kernel->code.data();
    grid_.config = grid.config;
    grid_.program = grid.program;
    grid_.constants = grid.constants;
    grid_.warps_per_block = grid.warps_per_block;
    grid_.result = &result_;
    Follow(kernel_.control.differences);
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
        steps_ += kStepsOfEvaluation;
        registers_.Execute(warp, in, mask);
        continue;
      }
      if (step == CensusStep::kBranch) {
        if (in.run == &BranchIndexed && !registers_.AgreesOnValue(in.a)) return Undecided(in.a, seen);
        if (mask != 0) in.run(warp, in, mask);
      }
      Mix(&seen->trace, uint64_t{pc} << 32 | mask);
      if (++steps_ > kMostSteps) return false;
    }
  }

  Grid grid_;  // its own, without memory: the evaluation has no outside effects
  const Kernel& kernel_;
  const CensusPlan* plan_ = nullptr;
  LaunchResult result_;
  IntervalRegisters registers_;
  std::vector<uint32_t> stop_;  // by pc: the next instruction that is not skipped
  Block block_;
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

}  // namespace

std::optional<std::vector<BlockClass>> TakeCensus(const Grid& grid) {
  Census census(grid);
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
