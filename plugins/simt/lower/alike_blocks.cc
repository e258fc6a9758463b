// Whether one block of a launch shows what the others compute: it does if the block's number only moves the places that
// are loaded from and stored to, evenly. Then blocks that take the same decisions differ in nothing else, and a few of
// them are proof of all. That fails if the number reaches a stored value, or an address by a division.
#include <algorithm>
#include <utility>

#include "simt/lower/lowering.h"
#include "simt/state/handlers.h"

namespace kgrpo::simt {
namespace {

class Likeness {
 public:
  Likeness(const Kernel& kernel, const ControlFlow& flow, std::vector<Origin> starts,
           const std::vector<Nature>& natures)
      : kernel_(kernel),
        flow_(flow),
        natures_(natures),
        origin_(std::move(starts)),
        by_data_(kernel.code.size(), false),
        own_tables_(std::any_of(kernel.patches.begin(), kernel.patches.end(), [](const ConstantPatch& patch) {
          return patch.kind == ConstantPatch::Kind::kGlobal;
        })) {
    for (Origin& origin : origin_) {
      if (origin == Origin::kBlock) origin = Origin::kAffine;
      if (origin == Origin::kData) origin = Origin::kBlock;  // a multiprocessor's number
    }
  }

  bool Run() {
    const auto size = static_cast<uint32_t>(kernel_.code.size());
    for (bool changed = true; changed;) {
      changed = false;
      // Decisions on data are not among those of the census. What one that also depends on the block decides differs.
      for (const ControlFlow::DataBranch& branch : flow_.data_branches) {
        if (Sources(branch.pc) == Origin::kThread) continue;
        for (const uint32_t pc : branch.region) by_data_[pc] = true;
      }
      for (uint32_t pc = 0; pc < size; ++pc) {
        const Origin origin = ResultOf(pc);
        Registers(pc, true, [&](uint32_t reg) {
          changed |= origin > origin_[reg];
          origin_[reg] = std::max(origin, origin_[reg]);
        });
      }
    }
    for (uint32_t pc = 0; pc < size; ++pc)
      if (!LeavesAlike(pc)) return false;
    return true;
  }

 private:
  template <typename Each>
  void Registers(uint32_t pc, bool written, Each each) const {
    for (uint32_t m = kernel_.mention_start[pc]; m < kernel_.mention_start[pc + 1]; ++m)
      if (((kernel_.mentions[m] & 1u) != 0) == written) each(kernel_.mentions[m] / 2);
  }
  Origin Of(Operand operand) const {
    return operand >= 0 && operand != kNoOperand ? origin_[static_cast<size_t>(operand)] : Origin::kThread;
  }
  Origin Sources(uint32_t pc) const {
    Origin origin = Origin::kThread;
    Registers(pc, false, [&](uint32_t reg) { origin = std::max(origin, origin_[reg]); });
    return origin;
  }
  static bool IsShared(const Instruction& in) {
    const auto space = static_cast<Space>(in.space);
    return space != Space::kGlobal && space != Space::kGeneric;
  }

  // kThread: the same in all blocks, or data from places that move evenly. kAffine: a number that does. kBlock: other.
  Origin ResultOf(uint32_t pc) const {
    const Instruction& in = kernel_.code[pc];
    if (by_data_[pc]) return Origin::kBlock;
    if (natures_[pc].transfer == Transfer::kLoads) {
      // Tables of the kernel's own may say anything of a block.
      const Origin address = Of(in.a), most = IsShared(in) || own_tables_ ? Origin::kThread : Origin::kAffine;
      return address <= most ? Origin::kThread : Origin::kBlock;
    }
    const Origin origin = Sources(pc);
    if (origin == Origin::kThread) return origin;
    return Of(in.predicate) == Origin::kThread && IsLinear(in, origin_) ? origin : Origin::kBlock;
  }

  // False: what it writes to memory, or where, shows the block's number.
  bool LeavesAlike(uint32_t pc) const {
    const Instruction& in = kernel_.code[pc];
    const Transfer transfer = natures_[pc].transfer;
    if (transfer == Transfer::kCopies) {
      const bool bulk_store = in.run == &StoreBulk;  // from shared memory
      bool own = Of(in.a) == Origin::kThread && Of(in.b) <= Origin::kAffine && Of(in.c) == Origin::kThread;
      return own && (bulk_store || !own_tables_ || Of(in.b) == Origin::kThread);
    }
    if (transfer != Transfer::kStores) return true;
    if (Of(in.a) > (IsShared(in) ? Origin::kThread : Origin::kAffine)) return false;
    bool alike = true, saw_address = false, saw_predicate = false;
    Registers(pc, false, [&](uint32_t reg) {
      const auto operand = static_cast<Operand>(reg);
      if (operand == in.predicate && !saw_predicate) {  // decided
        saw_predicate = true;
      } else if (operand == in.a && !saw_address) {
        saw_address = true;
      } else {
        alike = alike && origin_[reg] == Origin::kThread;
      }
    });
    return alike;
  }

  const Kernel& kernel_;
  const ControlFlow& flow_;
  const std::vector<Nature>& natures_;
  std::vector<Origin> origin_;  // by register
  std::vector<bool> by_data_;   // by pc: a decision on data and the block's number controls it
  const bool own_tables_;
};

}  // namespace

bool BlocksAreAlike(const Kernel& kernel, const ControlFlow& flow, std::vector<Origin> starts,
                    const std::vector<Nature>& natures) {
  return !flow.by_data && Likeness(kernel, flow, std::move(starts), natures).Run();
}

}  // namespace kgrpo::simt
