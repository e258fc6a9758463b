// Notes for the analysis of control flow (control_flow.h) which instructions bring in data and which only compute.
#include <algorithm>
#include <initializer_list>

#include "simt/lower/lowerer.h"
#include "simt/lower/lowering.h"
#include "simt/state/handlers.h"

namespace kgrpo::simt {

void Lowerer::NoteNature(const Instruction& in) {
  const std::string_view base = opcode_.substr(0, opcode_.find('.'));
  const auto is_one_of = [base](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), base) != names.end();
  };
  const bool loads = is_one_of({"ld", "ldu"});
  const bool brings =
      loads || is_one_of({"atom", "shfl", "vote", "match", "redux", "activemask", "elect", "bar", "barrier", "mbarrier",
                          "ldmatrix", "movmatrix", "mma", "wmma", "call", "cp", "tex", "suld"});
  const bool acts = brings || is_one_of({"st", "sust", "red", "membar", "fence", "stmatrix", "bra", "brx", "ret",
                                         "exit", "trap", "brkpt", "nanosleep", "prefetch", "prefetchu", "discard",
                                         "applypriority", "pmevent", "griddepcontrol"});
  // The census follows no carries, no parts of vectors, and no clocks.
  const bool opaque = opcode_.find(".cc") != std::string_view::npos || is_one_of({"addc", "subc", "madc"}) ||
                      in.run == &ReadClock32 || in.run == &ReadClock64 || in.run == &Lop3Predicate || in.count > 1;
  const bool is_parameter = loads && from_parameters_;
  const auto space = static_cast<Space>(in.space);
  const bool global = space == Space::kGlobal || space == Space::kGeneric;
  const bool stores = base == "st" || opcode_.starts_with("wmma.store");
  const bool loads_matrix = base == "ldmatrix" || opcode_.starts_with("wmma.load");
  Nature nature;
  nature.gives_data = (brings && !is_parameter) || opaque;
  nature.arithmetic = !acts || is_parameter;
  nature.stores = (stores && global) || in.run == &StoreBulk;
  if (stores || is_one_of({"atom", "red", "stmatrix"})) {
    nature.transfer = Transfer::kStores;
  } else if (base == "cp" || in.run == &StoreBulk) {
    nature.transfer = Transfer::kCopies;
  } else if ((loads && !is_parameter) || loads_matrix) {
    nature.transfer = Transfer::kLoads;
  }
  natures_.push_back(nature);
  loads_registers_.push_back(
      (loads || loads_matrix) && !is_parameter && space != Space::kConst && space != Space::kParam ? 1 : 0);
}

void Lowerer::FinishControl(const std::vector<Operand>& offsets) {
  std::vector<Origin> starts(types_.size(), Origin::kThread);
  for (const auto& [kind, reg] : specials_) {
    if (kind == SpecialSlot::Kind::kSm) starts[reg] = Origin::kData;
    if (kind == SpecialSlot::Kind::kCtaX || kind == SpecialSlot::Kind::kCtaY || kind == SpecialSlot::Kind::kCtaZ)
      starts[reg] = Origin::kBlock;
  }
  kernel_.control = AnalyseControl(kernel_, starts, natures_);
  kernel_.control.alike = BlocksAreAlike(kernel_, kernel_.control, std::move(starts), natures_);
  kernel_.control.reads_clock = reads_clock_;
  for (size_t reg = 0; reg < types_.size(); ++reg) {
    if (types_[reg] == Type::kPred && offsets[reg] != kNoOperand)
      kernel_.control.predicate_bytes =
          std::max(kernel_.control.predicate_bytes, static_cast<uint32_t>(offsets[reg]) + 4);
  }
}

}  // namespace kgrpo::simt
