#include "simt/state/control_flow.h"

#include <algorithm>
#include <utility>

#include "simt/lower/cost.h"
#include "simt/lower/integer_meaning.h"
#include "simt/lower/lowering.h"
#include "simt/state/handlers.h"

namespace kgrpo::simt {
namespace {

constexpr uint32_t kEnd = UINT32_MAX;

bool IsBranch(const Instruction& in) { return in.run == &Branch || in.run == &BranchIndexed || in.run == &Exit; }

// Returns true if the instruction may send lanes different ways.
bool Decides(const Instruction& in) { return in.run == &BranchIndexed || (IsBranch(in) && in.predicate >= 0); }

}  // namespace

bool IsLinear(const Instruction& in, const std::vector<Origin>& origins) {
  const IntegerMeaning* meaning = MeaningOf(in.run);
  if (meaning == nullptr) return false;
  const auto varies = [&](Operand operand) {
    return operand >= 0 && operand != kNoOperand && origins[static_cast<size_t>(operand)] != Origin::kThread;
  };
  switch (meaning->operation) {
    case Operation::kCopy:
    case Operation::kAdd:
    case Operation::kSub:
    case Operation::kNeg:
    case Operation::kNot:
    case Operation::kConvert: return true;
    case Operation::kMulLo:
    case Operation::kMulWide:
    case Operation::kMadLo:
    case Operation::kMadWide: return !varies(in.a) || !varies(in.b);
    case Operation::kShl: return !varies(in.b);
    case Operation::kSelect: return !varies(in.c);
    default: return false;
  }
}

namespace {

// The basic blocks, and for each block the nearest one on every path to the end (kEnd: the end).
struct Graph {
  std::vector<uint32_t> block_at;  // by pc
  std::vector<std::vector<uint32_t>> successors;
  std::vector<uint32_t> joins;

  explicit Graph(const Kernel& kernel) : block_at(kernel.code.size(), 0) {
    const auto count = static_cast<uint32_t>(kernel.blocks.size());
    for (uint32_t b = 0; b < count; ++b)
      for (uint32_t pc = kernel.blocks[b].first; pc < kernel.blocks[b].last; ++pc) block_at[pc] = b;
    successors.resize(count);
    for (uint32_t b = 0; b < count; ++b) successors[b] = SuccessorsOf(kernel, b, block_at);
    FindJoins(kernel);
  }

  // Returns the blocks that may run between the decision at the end of `block` and the join of its paths.
  std::vector<uint32_t> Region(uint32_t block) const {
    std::vector<uint32_t> region, open = successors[block];
    std::vector<bool> seen(successors.size(), false);
    while (!open.empty()) {
      const uint32_t b = open.back();
      open.pop_back();
      if (b == joins[block] || seen[b]) continue;
      seen[b] = true;
      region.push_back(b);
      open.insert(open.end(), successors[b].begin(), successors[b].end());
    }
    return region;
  }

  // Returns true if `block`, or a block of the region between it and its join, may run again before the join.
  bool Repeats(uint32_t block, const std::vector<uint32_t>& region) const {
    std::vector<uint32_t> entries(successors.size(), 0);  // from within the region
    std::vector<bool> inside(successors.size(), false);
    for (const uint32_t b : region) inside[b] = true;
    if (inside[block]) return true;
    for (const uint32_t b : region)
      for (const uint32_t next : successors[b]) entries[next] += inside[next] ? 1 : 0;
    std::vector<uint32_t> open;
    for (const uint32_t b : region)
      if (entries[b] == 0) open.push_back(b);
    size_t ended = 0;
    for (; !open.empty(); ++ended) {
      const uint32_t b = open.back();
      open.pop_back();
      for (const uint32_t next : successors[b])
        if (inside[next] && --entries[next] == 0) open.push_back(next);
    }
    return ended < region.size();
  }

 private:
  // Immediate post-dominators (Cooper, Harvey and Kennedy, A Simple, Fast Dominance Algorithm), from the end backwards.
  void FindJoins(const Kernel& kernel) {
    const auto count = static_cast<uint32_t>(successors.size());
    std::vector<std::vector<uint32_t>> predecessors(count + 1);  // node `count` is the end
    for (uint32_t b = 0; b < count; ++b) {
      for (const uint32_t next : successors[b]) predecessors[next].push_back(b);
      if (successors[b].empty() || kernel.code[kernel.blocks[b].last - 1].run == &Exit)
        predecessors[count].push_back(b);
    }
    std::vector<uint32_t> order, number(count + 1, kEnd);  // postorder of the reversed graph
    std::vector<std::pair<uint32_t, size_t>> path{{count, 0}};
    std::vector<bool> seen(count + 1, false);
    seen[count] = true;
    while (!path.empty()) {
      auto& [b, next] = path.back();
      if (next < predecessors[b].size()) {
        const uint32_t to = predecessors[b][next++];
        if (!seen[to]) {
          seen[to] = true;
          path.emplace_back(to, 0);
        }
        continue;
      }
      number[b] = static_cast<uint32_t>(order.size());
      order.push_back(b);
      path.pop_back();
    }
    std::vector<uint32_t> above(count + 1, kEnd);
    above[count] = count;
    const auto meet = [&](uint32_t a, uint32_t b) {
      while (a != b) {
        while (number[a] < number[b]) a = above[a];
        while (number[b] < number[a]) b = above[b];
      }
      return a;
    };
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = order.size() - 1; i-- > 0;) {
        const uint32_t b = order[i];
        uint32_t join = kEnd;
        const auto take = [&](uint32_t next) {
          if (above[next] != kEnd) join = join == kEnd ? next : meet(join, next);
        };
        for (const uint32_t next : successors[b]) take(next);
        if (successors[b].empty() || kernel.code[kernel.blocks[b].last - 1].run == &Exit) take(count);
        if (join != above[b]) {
          above[b] = join;
          changed = true;
        }
      }
    }
    joins.assign(above.begin(), above.begin() + count);
    for (uint32_t& join : joins) join = join == count ? kEnd : join;
  }
};

class Analysis {
 public:
  Analysis(const Kernel& kernel, std::vector<Origin> starts, const std::vector<Nature>& natures)
      : kernel_(kernel),
        graph_(kernel),
        origin_(std::move(starts)),
        place_(origin_),
        natures_(natures),
        guard_(kernel.blocks.size(), Origin::kThread),
        decided_by_(kernel.blocks.size(), Origin::kThread) {}

  ControlFlow Run() {
    Spread();
    for (uint32_t pc = 0; pc < kernel_.code.size() && !flow_.by_data; ++pc) {
      const Instruction& in = kernel_.code[pc];
      if (in.run == &CallSubroutine || in.run == &ReturnFromSubroutine) flow_.by_data = true;
      if (Decides(in)) Decision(pc);
      if (in.predicate >= 0 && !IsBranch(in) && !natures_[pc].arithmetic) Note(OriginOf(in.predicate));
    }
    if (flow_.by_data) {
      flow_.data_branches.clear();
      FindTickets();
    } else {
      flow_.differences = Plan(Wanted::kDifferences);
      flow_.all = Plan(Wanted::kAll);
      SpreadPlaces();
      if (flow_.stored_at != Origin::kData) flow_.stores = Plan(Wanted::kStores);
    }
    return std::move(flow_);
  }

 private:
  template <typename Each>
  void Registers(uint32_t pc, bool written, Each each) const {
    for (uint32_t m = kernel_.mention_start[pc]; m < kernel_.mention_start[pc + 1]; ++m)
      if (((kernel_.mentions[m] & 1u) != 0) == written) each(kernel_.mentions[m] / 2);
  }
  Origin OriginOf(Operand operand) const {
    return operand >= 0 && operand != kNoOperand ? origin_[static_cast<size_t>(operand)] : Origin::kThread;
  }
  Origin Sources(uint32_t pc) const {
    Origin origin = Origin::kThread;
    Registers(pc, false, [&](uint32_t reg) { origin = std::max(origin, origin_[reg]); });
    return origin;
  }
  void Note(Origin origin) {
    flow_.by_data |= origin == Origin::kData;
    flow_.by_block |= origin == Origin::kBlock;
  }

  // Finds what each register depends on: its sources, and the decisions that control its writes.
  void Spread() {
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t b = 0; b < kernel_.blocks.size(); ++b) {
        const BasicBlock& block = kernel_.blocks[b];
        for (uint32_t pc = block.first; pc < block.last; ++pc) {
          const Origin origin = natures_[pc].gives_data ? Origin::kData : std::max(Sources(pc), guard_[b]);
          Registers(pc, true, [&](uint32_t reg) {
            changed |= origin > origin_[reg];
            origin_[reg] = std::max(origin, origin_[reg]);
          });
        }
        if (!Decides(kernel_.code[block.last - 1])) continue;
        const Origin origin = Sources(block.last - 1);
        if (origin <= decided_by_[b]) continue;
        decided_by_[b] = origin;
        changed = true;
        for (const uint32_t inside : graph_.Region(b)) guard_[inside] = std::max(guard_[inside], origin);
      }
    }
  }

  // The operands that decide where a store stores.
  template <typename Each>
  static void PlacesOf(const Instruction& in, Each each) {
    for (const Operand operand : {in.a, in.b, in.c})
      if (operand >= 0 && operand != kNoOperand) each(static_cast<size_t>(operand));
  }

  // Finds what the addresses of stores depend on, among blocks that take the same decisions: those that depend on the
  // block's number do not matter, but a result that is not affine in it does.
  void SpreadPlaces() {
    for (Origin& place : place_) place = place == Origin::kBlock ? Origin::kAffine : place;
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t pc = 0; pc < kernel_.code.size(); ++pc) {
        const Instruction& in = kernel_.code[pc];
        Origin place = Origin::kThread;
        Registers(pc, false, [&](uint32_t reg) { place = std::max(place, place_[reg]); });
        const bool by_predicate = in.predicate >= 0 && place_[static_cast<size_t>(in.predicate)] != Origin::kThread;
        if (place == Origin::kAffine && (by_predicate || !IsLinear(in, place_))) place = Origin::kBlock;
        if (natures_[pc].gives_data || guard_[graph_.block_at[pc]] == Origin::kData) place = Origin::kData;
        Registers(pc, true, [&](uint32_t reg) {
          changed |= place > place_[reg];
          place_[reg] = std::max(place, place_[reg]);
        });
      }
    }
    flow_.stored_at = Origin::kThread;
    for (uint32_t pc = 0; pc < kernel_.code.size(); ++pc) {
      if (natures_[pc].stores)
        PlacesOf(kernel_.code[pc], [&](size_t reg) { flow_.stored_at = std::max(flow_.stored_at, place_[reg]); });
    }
  }

  void Decision(uint32_t pc) {
    const Origin origin = Sources(pc);
    if (origin != Origin::kData) return Note(origin);
    const std::vector<uint32_t> region = graph_.Region(graph_.block_at[pc]);
    ControlFlow::DataBranch branch{pc, {}};
    bool bounded = kernel_.code[pc].run == &Branch && !graph_.Repeats(graph_.block_at[pc], region);
    for (const uint32_t b : region) {
      for (uint32_t p = kernel_.blocks[b].first; p < kernel_.blocks[b].last; ++p) {
        bounded &= natures_[p].arithmetic || kernel_.code[p].run == &Branch;
        branch.region.push_back(p);
      }
    }
    if (!bounded) return Note(Origin::kData);
    flow_.data_branches.push_back(std::move(branch));
  }

  void FindTickets() {
    std::vector<bool> read(origin_.size(), false);
    for (uint32_t pc = 0; pc < kernel_.code.size(); ++pc) Registers(pc, false, [&](uint32_t reg) { read[reg] = true; });
    for (uint32_t pc = 0; pc < kernel_.code.size(); ++pc) {
      const Instruction& in = kernel_.code[pc];
      const auto space = static_cast<Space>(in.space);
      if (static_cast<LatencyClass>(kernel_.costs[pc].latency) != LatencyClass::kAtomic ||
          (space != Space::kGlobal && space != Space::kGeneric))
        continue;
      Registers(pc, true, [&](uint32_t reg) { flow_.tickets = flow_.tickets || read[reg]; });
    }
  }

  // Returns the plan with all that decisions (kStores: addresses of stores) depend on, found backwards from them.
  // kDifferences takes decisions that depend on the block's number, and those that control an instruction which such
  // decisions depend on; kStores takes those that control a store or an instruction which its address depends on.
  enum class Wanted { kDifferences, kAll, kStores };
  CensusPlan Plan(Wanted wanted_steps) const {
    const bool every = wanted_steps == Wanted::kAll, stores = wanted_steps == Wanted::kStores;
    const auto count = static_cast<uint32_t>(kernel_.code.size());
    CensusPlan plan{std::vector<CensusStep>(count, CensusStep::kSkip), std::vector<uint32_t>(count, 0)};
    std::vector<bool> needed(origin_.size(), false);
    const auto take = [&](uint32_t pc, CensusStep step) {
      plan.steps[pc] = step;
      Registers(pc, false, [&](uint32_t reg) { needed[reg] = true; });
    };
    for (uint32_t pc = 0; pc < count; ++pc) {
      const Instruction& in = kernel_.code[pc];
      if (IsBranch(in)) {
        const bool data = std::any_of(flow_.data_branches.begin(), flow_.data_branches.end(),
                                      [pc](const ControlFlow::DataBranch& branch) { return branch.pc == pc; });
        const uint32_t join = graph_.joins[graph_.block_at[pc]];
        if (data) continue;
        if (every || !Decides(in) || join == kEnd || (!stores && Sources(pc) != Origin::kThread)) {
          take(pc, CensusStep::kBranch);
        } else {
          plan.steps[pc] = CensusStep::kJoin;
          plan.joins[pc] = kernel_.blocks[join].first;
        }
      } else if (stores) {
        if (!natures_[pc].stores) continue;
        plan.steps[pc] = CensusStep::kStore;
        PlacesOf(in, [&](size_t reg) { needed[reg] = true; });
        if (in.predicate >= 0) needed[static_cast<size_t>(in.predicate)] = true;
      } else if (in.predicate >= 0 && !natures_[pc].arithmetic &&
                 (every || OriginOf(in.predicate) != Origin::kThread)) {
        plan.steps[pc] = CensusStep::kGuarded;
        needed[static_cast<size_t>(in.predicate)] = true;
      }
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t pc = count; pc-- > 0;) {
        bool wanted = false;
        if (plan.steps[pc] == CensusStep::kSkip) {
          Registers(pc, true, [&](uint32_t reg) { wanted = wanted || needed[reg]; });
          if (wanted) take(pc, CensusStep::kEvaluate);
        } else if (plan.steps[pc] == CensusStep::kJoin) {
          wanted = MattersBetween(graph_.block_at[pc], plan);
          if (wanted) take(pc, CensusStep::kBranch);
        }
        changed |= wanted;
      }
    }
    return plan;
  }

  // Returns true if the plan evaluates or decides anything between the end of `block` and its join.
  bool MattersBetween(uint32_t block, const CensusPlan& plan) const {
    for (const uint32_t b : graph_.Region(block)) {
      for (uint32_t pc = kernel_.blocks[b].first; pc < kernel_.blocks[b].last; ++pc) {
        const CensusStep step = plan.steps[pc];
        const bool plain = kernel_.code[pc].run == &Branch && !Decides(kernel_.code[pc]);
        if (step != CensusStep::kSkip && step != CensusStep::kJoin && !plain) return true;
      }
    }
    return false;
  }

  const Kernel& kernel_;
  const Graph graph_;
  std::vector<Origin> origin_, place_;  // by register
  const std::vector<Nature>& natures_;
  std::vector<Origin> guard_;       // by block: of the decisions that control it
  std::vector<Origin> decided_by_;  // by block: of the decision at its end
  ControlFlow flow_;
};

}  // namespace

ControlFlow AnalyseControl(const Kernel& kernel, std::vector<Origin> starts, const std::vector<Nature>& natures) {
  return Analysis(kernel, std::move(starts), natures).Run();
}

}  // namespace kgrpo::simt
