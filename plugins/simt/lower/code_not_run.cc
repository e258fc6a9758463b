#include "simt/lower/code_not_run.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "simt/lower/integer_meaning.h"
#include "simt/lower/lowering.h"
#include "simt/state/handlers.h"
#include "simt/state/program.h"

namespace kgrpo::simt {
namespace {

using Line = CodeNotRun::Line;
using Boundary = CodeNotRun::Boundary;

// One kernel's code and the edges that ran.
class Ran {
 public:
  Ran(const Kernel& kernel, const Coverage& coverage)
      : kernel_(kernel),
        edges_(coverage.edges),
        block_at_(kernel.code.size(), 0),
        reached_(kernel.blocks.size(), false) {
    for (uint32_t b = 0; b < kernel.blocks.size(); ++b)
      for (uint32_t pc = kernel.blocks[b].first; pc < kernel.blocks[b].last; ++pc) block_at_[pc] = b;
    if (edges_.empty()) return;
    std::vector<uint32_t> open{0};
    for (const Subroutine& subroutine : kernel.subroutines)
      if ((edges_[subroutine.pc] & kEntered) != 0) open.push_back(block_at_[subroutine.pc]);
    while (!open.empty()) {
      const uint32_t b = open.back();
      open.pop_back();
      if (reached_[b]) continue;
      reached_[b] = true;
      for (const uint32_t next : SuccessorsOf(kernel, b, block_at_))
        if (Went(b, next)) open.push_back(next);
    }
  }

  bool launched() const { return !edges_.empty(); }
  bool Reached(uint32_t block) const { return reached_[block]; }

  // The blocks that were not reached, from `block` on.
  std::vector<uint32_t> From(uint32_t block) const {
    std::vector<uint32_t> found, open{block};
    std::vector<bool> seen = reached_;
    while (!open.empty()) {
      const uint32_t b = open.back();
      open.pop_back();
      if (seen[b]) continue;
      seen[b] = true;
      found.push_back(b);
      for (const uint32_t next : SuccessorsOf(kernel_, b, block_at_)) open.push_back(next);
    }
    return found;
  }

  std::vector<uint32_t> NextOf(uint32_t block) const { return SuccessorsOf(kernel_, block, block_at_); }

  // The comparison by which the branch at the end of `block` goes to the block `to`.
  std::optional<Boundary> BoundaryOf(uint32_t block, uint32_t to) const {
    const uint32_t pc = kernel_.blocks[block].last - 1;
    const Instruction& branch = kernel_.code[pc];
    if (branch.run != &Branch || branch.predicate < 0) return std::nullopt;
    // The predicate's value there.
    const bool wanted = (block_at_[branch.extra] == to) != (branch.flip != 0);
    const std::optional<uint32_t> at = OnlySetter(ReadBy(pc));
    return at ? ComparisonAt(*at, wanted) : std::nullopt;
  }

  // The comparison that sets a predicate to that value.
  std::optional<Boundary> ComparisonAt(uint32_t pc, bool wanted) const {
    const Instruction& in = kernel_.code[pc];
    const IntegerMeaning* meaning = MeaningOf(in.run);
    if (meaning == nullptr || meaning->operation != Operation::kCompare) return std::nullopt;
    const std::optional<int64_t> left = ConstantOf(in.a, meaning->type), right = ConstantOf(in.b, meaning->type);
    if (left.has_value() == right.has_value()) return std::nullopt;
    constexpr const char* kRelations[] = {"==", "!=", "<", "<=", ">", ">="};
    constexpr Relation kOpposite[] = {Relation::kNe, Relation::kEq, Relation::kGe,
                                      Relation::kGt, Relation::kLe, Relation::kLt};
    constexpr Relation kMirrored[] = {Relation::kEq, Relation::kNe, Relation::kGt,
                                      Relation::kGe, Relation::kLt, Relation::kLe};
    Relation relation = meaning->relation;
    if (left) relation = kMirrored[static_cast<size_t>(relation)];
    if (!wanted) relation = kOpposite[static_cast<size_t>(relation)];
    Boundary boundary{-1, kRelations[static_cast<size_t>(relation)], left ? *left : *right};
    FindParameter(left ? in.b : in.a, pc, &boundary);
    return boundary;
  }

  // The outcome of a comparison of a varying parameter that no launch had, if all had the same; `launches`: their
  // parameters.
  std::optional<Boundary> OtherOutcome(uint32_t pc, const std::vector<std::vector<uint8_t>>& launches) const {
    const std::optional<Boundary> outcome = ComparisonAt(pc, true);
    if (!outcome || outcome->parameter < 0 || outcome->addend != 0) return std::nullopt;
    const Type type = MeaningOf(kernel_.code[pc].run)->type;
    bool always = true, never = true;
    std::set<int64_t> values;
    for (const std::vector<uint8_t>& parameters : launches) {
      int64_t value = 0;
      std::memcpy(&value, parameters.data() + outcome->parameter, TypeBytes(type));
      if (TypeBytes(type) == 4 && TypeIsSigned(type)) value = static_cast<int32_t>(value);
      const std::string relation = outcome->relation;
      const bool less = value < outcome->constant, equal = value == outcome->constant;
      const bool is_true = relation == "=="   ? equal
                           : relation == "!=" ? !equal
                           : relation == "<"  ? less
                           : relation == "<=" ? less || equal
                           : relation == ">"  ? !less && !equal
                                              : !less;
      always = always && is_true;
      never = never && !is_true;
      values.insert(value);
    }
    const std::optional<Boundary> other = never ? outcome : always ? ComparisonAt(pc, false) : std::nullopt;
    // A parameter that has one value says nothing of sizes; a smaller one than all mostly skips a loop.
    const bool is_size =
        other && values.size() > 1 && other->constant > 1 && other->relation[0] != '<' && other->relation[0] != '!';
    return is_size ? other : std::nullopt;
  }

 private:
  bool Went(uint32_t from, uint32_t to) const {
    const uint32_t pc = kernel_.blocks[from].last - 1;
    const Instruction& in = kernel_.code[pc];
    const auto ran = [&](uint32_t at, Edges edge) { return (edges_[at] & edge) != 0; };
    const bool behind = kernel_.blocks[from].last == kernel_.blocks[to].first;
    if (in.run == &Branch) return (block_at_[in.extra] == to && ran(pc, kTaken)) || (behind && ran(pc, kPassed));
    if (in.run == &BranchIndexed) {
      for (uint32_t i = in.extra; i < in.extra + static_cast<uint32_t>(in.offset); ++i) {
        if (block_at_[kernel_.branch_targets[i]] == to && ran(static_cast<uint32_t>(kernel_.code.size()) + i, kTaken))
          return true;
      }
      return behind && ran(pc, kPassed);
    }
    return in.run == &Exit ? ran(pc, kPassed) : true;
  }

  // The virtual register that the instruction reads, if it reads one; else none.
  std::optional<uint32_t> ReadBy(uint32_t pc) const {
    std::optional<uint32_t> only;
    for (uint32_t m = kernel_.mention_start[pc]; m < kernel_.mention_start[pc + 1]; ++m) {
      if ((kernel_.mentions[m] & 1u) != 0) continue;
      if (only && *only != kernel_.mentions[m] / 2) return std::nullopt;
      only = kernel_.mentions[m] / 2;
    }
    return only;
  }
  // The instruction that sets the register, if there is one.
  std::optional<uint32_t> OnlySetter(std::optional<uint32_t> reg) const {
    std::optional<uint32_t> only;
    for (uint32_t pc = 0; reg && pc < kernel_.code.size(); ++pc) {
      for (uint32_t m = kernel_.mention_start[pc]; m < kernel_.mention_start[pc + 1]; ++m) {
        if (kernel_.mentions[m] != *reg * 2 + 1) continue;
        if (only) return std::nullopt;
        only = pc;
      }
    }
    return only;
  }

  const ConstantPatch* PatchOf(Operand operand) const {
    const auto at = static_cast<uint32_t>(~operand);
    const auto found = std::find_if(kernel_.patches.begin(), kernel_.patches.end(),
                                    [at](const ConstantPatch& patch) { return patch.at == at; });
    return found == kernel_.patches.end() ? nullptr : &*found;
  }
  // An immediate's value.
  std::optional<int64_t> ConstantOf(Operand operand, Type type) const {
    if (operand >= 0 || PatchOf(operand) != nullptr) return std::nullopt;
    const auto word = static_cast<size_t>(~operand) / 4;
    if (TypeBytes(type) == 4)
      return TypeIsSigned(type) ? int64_t{static_cast<int32_t>(kernel_.constants[word])}
                                : int64_t{kernel_.constants[word]};
    int64_t value = 0;
    std::memcpy(&value, &kernel_.constants[word], sizeof value);
    return value;
  }
  // Sets the parameter that `operand` of the instruction at `pc` is, as its offset, if it is one plus a constant.
  void FindParameter(Operand operand, uint32_t pc, Boundary* boundary) const {
    for (int steps = 0; steps < 4; ++steps) {
      if (operand < 0) {
        const ConstantPatch* patch = PatchOf(operand);
        if (patch != nullptr && patch->kind == ConstantPatch::Kind::kParameter)
          boundary->parameter = static_cast<int>(patch->value);
        return;
      }
      const std::optional<uint32_t> at = OnlySetter(ReadBy(pc));
      if (!at) return;
      const Instruction& in = kernel_.code[*at];
      const IntegerMeaning* meaning = MeaningOf(in.run);
      if (meaning == nullptr) return;
      pc = *at;
      operand = in.a;
      if (meaning->operation == Operation::kAdd) {
        // A sum that wraps around is of a negative constant.
        const std::optional<int64_t> addend = ConstantOf(in.b, TypeBytes(meaning->type) == 4 ? Type::kS32 : Type::kS64);
        if (!addend) return;
        boundary->addend += *addend;
      } else if (meaning->operation != Operation::kCopy && meaning->operation != Operation::kConvert) {
        return;
      }
    }
  }

  const Kernel& kernel_;
  const std::vector<Edges>& edges_;
  std::vector<uint32_t> block_at_;  // by pc
  std::vector<bool> reached_;       // by block
};

Line LineIn(const Program& program, const Kernel& kernel, uint32_t pc) {
  const SourceLine& line = kernel.lines[pc];
  return {line.file < program.files.size() ? program.files[line.file] : "", line.line};
}

}  // namespace

CodeNotRun::Line LineAt(const Module& module, uint32_t kernel, uint32_t edge) {
  const Kernel& one = module.program().kernels[kernel];
  if (edge < one.code.size()) return LineIn(module.program(), one, edge);
  for (uint32_t pc = 0; pc < one.code.size(); ++pc) {
    const Instruction& in = one.code[pc];
    const auto first = static_cast<uint32_t>(one.code.size()) + in.extra;
    if (in.run == &BranchIndexed && edge >= first && edge - first < static_cast<uint32_t>(in.offset))
      return LineIn(module.program(), one, pc);
  }
  return {};
}

std::vector<CodeNotRun> FindCodeNotRun(const Module& module, const std::vector<Coverage>& by_kernel) {
  const Program& program = module.program();
  std::vector<Ran> kernels;
  std::set<Line> ran;
  for (size_t k = 0; k < program.kernels.size(); ++k) {
    const Kernel& kernel = program.kernels[k];
    kernels.emplace_back(kernel, by_kernel[k]);
    for (uint32_t b = 0; b < kernel.blocks.size(); ++b)
      for (uint32_t pc = kernel.blocks[b].first; kernels.back().Reached(b) && pc < kernel.blocks[b].last; ++pc)
        ran.insert(LineIn(program, kernel, pc));
  }
  std::vector<CodeNotRun> all;
  std::set<Line> named;
  const auto push = [&](uint32_t k, const std::set<Line>& lines, std::optional<Boundary> boundary) {
    if (boundary && boundary->parameter >= 0) {  // from its offset to its number
      const std::vector<KernelParameter>& parameters = module.kernels()[k].parameters;
      const auto found = std::find_if(parameters.begin(), parameters.end(), [&](const KernelParameter& parameter) {
        return static_cast<int>(parameter.offset) == boundary->parameter;
      });
      boundary->parameter = found == parameters.end() ? -1 : static_cast<int>(found - parameters.begin());
    }
    all.push_back({k, {lines.begin(), lines.end()}, boundary});
  };
  const auto add = [&](uint32_t k, uint32_t block, std::optional<Boundary> boundary) {
    const Kernel& kernel = program.kernels[k];
    std::set<Line> lines;
    for (const uint32_t b : kernels[k].From(block))
      for (uint32_t pc = kernel.blocks[b].first; pc < kernel.blocks[b].last; ++pc)
        if (const Line line = LineIn(program, kernel, pc); line.line > 0 && !ran.contains(line)) lines.insert(line);
    std::erase_if(lines, [&](const Line& line) { return !named.insert(line).second; });
    if (!lines.empty()) push(k, lines, boundary);
  };
  for (uint32_t k = 0; k < kernels.size(); ++k) {
    if (!kernels[k].launched()) {
      if (!program.kernels[k].blocks.empty()) add(k, 0, std::nullopt);
      continue;
    }
    std::set<std::pair<int, int64_t>> known;  // parameters and constants
    for (uint32_t b = 0; b < program.kernels[k].blocks.size(); ++b) {
      if (!kernels[k].Reached(b)) continue;
      for (const uint32_t next : kernels[k].NextOf(b)) {
        if (kernels[k].Reached(next)) continue;
        const std::optional<Boundary> boundary = kernels[k].BoundaryOf(b, next);
        if (boundary) known.insert({boundary->parameter, boundary->constant});
        add(k, next, boundary);
      }
    }
    // Values that are selected without a branch.
    for (uint32_t b = 0; b < program.kernels[k].blocks.size(); ++b) {
      const BasicBlock& block = program.kernels[k].blocks[b];
      for (uint32_t pc = block.first; kernels[k].Reached(b) && pc < block.last; ++pc) {
        const Line line = LineIn(program, program.kernels[k], pc);
        const std::optional<Boundary> other = kernels[k].OtherOutcome(pc, by_kernel[k].parameters);
        if (other && line.line > 0 && known.insert({other->parameter, other->constant}).second &&
            named.insert(line).second)
          push(k, {line}, other);
      }
    }
  }
  return all;
}

}  // namespace kgrpo::simt
