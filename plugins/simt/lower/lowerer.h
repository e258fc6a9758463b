// One kernel while it is lowered. lowering.cc walks its statements; the members are defined in the lowering_*.cc, by
// what they lower.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simt/ptx/ptx_syntax.h"
#include "simt/state/opcode.h"
#include "simt/state/program.h"

namespace kgrpo::simt {

// The name that a mangled one ends with: "_ZZ9transposeE4tile" -> "tile".
std::string SourceName(std::string_view mangled);

// How an instruction treats unset sources (lowering_unset.cc).
UnsetRule UnsetRuleOf(const Opcode& op);

class Lowerer {
 public:
  // `module` and `globals` (names to indices in Program::globals) must outlive this.
  Lowerer(const PtxModule& module, const std::unordered_map<std::string_view, uint32_t>& globals);
  Kernel Run(const Function& entry);

 private:
  struct Place {
    Space space = Space::kGlobal;
    uint32_t offset = 0;
    bool framed = false;  // from the frame register on, not from the start of local memory
  };
  // One function as inlined at one call.
  struct Instance {
    const Function* function = nullptr;
    uint32_t register_base = 0;
    std::unordered_map<std::string_view, Place> variables;
    std::unordered_map<std::string_view, uint32_t> labels;  // index in Function::labels
    std::vector<uint32_t> label_pcs;                        // by label
    // Branches to be filled in once the labels' pcs are known.
    std::vector<std::pair<uint32_t, uint32_t>> branches;  // (pc, label)
    std::vector<std::pair<uint32_t, uint32_t>> tables;    // (index in Kernel::branch_targets, label)
    std::vector<uint32_t> returns;                        // pcs
  };
  // A word of the constants that holds a shared variable's address, set when all shared variables are known.
  struct SharedFixup {
    uint32_t at, width, variable;
    int64_t addend;
  };
  struct HashConstant {
    size_t operator()(const std::pair<uint32_t, uint64_t>& key) const {
      return std::hash<uint64_t>{}(key.second * 0x9E3779B97F4A7C15ull + key.first);
    }
  };

  // lowering.cc: functions, statements and the flow among them
  [[noreturn]] void Unsupported(const std::string& what);
  [[noreturn]] void UnsupportedInstruction(const Statement& statement);
  [[noreturn]] void Malformed(const std::string& what);
  void Body(Instance& instance, int depth);
  void Lower(const Statement& statement, int depth);
  void FinishLabels(int depth);
  uint32_t LabelOf(std::string_view name);
  void SetTarget(uint32_t pc, uint32_t target) { kernel_.code[pc].extra = target; }
  void IndexedBranch(const Statement& statement, const Opcode& op, Instruction& in);
  void Call(const Statement& statement, Instruction& in, int depth);
  void Inline(const Statement& statement, const Function& callee, Instruction& in, int depth);
  Operand FrameAddress(std::string_view name) {
    const Place place = FindVariable(name);
    return place.framed ? FrameOffset(place.offset, 4) : Constant(4, place.offset);
  }
  void Plain(const Statement& statement, const Opcode& op, Instruction& in);
  void Emit(const Instruction& in, const Cost& cost);
  // Emits `in` with a new register as its result, which the instruction emitted next reads.
  Operand EmitToNewRegister(Instruction& in, Type type, const Cost& cost);
  uint32_t Pc() const { return static_cast<uint32_t>(kernel_.code.size()); }

  // lowering_calls.cc
  std::vector<const Function*> FindSubroutines(const Function& entry) const;
  void LowerSubroutines(const std::vector<const Function*>& functions);
  void FinishStack();
  void FinishSubroutines(const std::vector<Operand>& offsets);
  void CallFunction(const Statement& statement, Instruction& in, int index);
  Operand FrameOffset(int64_t offset, uint32_t width);

  // lowering_operands.cc: constants and registers
  Operand Constant(uint32_t width, uint64_t bits);  // a broadcast immediate; `width` bytes a lane (4 or 8)
  uint32_t NewConstant(uint32_t width, uint64_t bits);
  Operand Patched(ConstantPatch patch);
  uint32_t NewRegister(Type type);
  // Notes that the instruction emitted next reads or writes `reg`.
  void Mention(uint32_t reg, bool definition) { kernel_.mentions.push_back(reg * 2 + (definition ? 1 : 0)); }
  Type TypeOf(const Arg& arg) const { return instance_->function->registers[static_cast<size_t>(arg.reg)]; }
  uint32_t SlotBytes(const Arg& arg) const;
  Operand Register(int reg, bool definition);
  Operand Target(const Arg& arg);  // a destination; a scratch register for '_'
  Operand TargetOf(const Arg& arg, uint32_t bytes);
  Operand SecondTarget(const Arg& arg) { return arg.second >= 0 ? Register(arg.second, true) : kNoOperand; }
  uint32_t Scratch();
  // A source whose lanes have `bytes` bytes. Type kF32/kF64 tells how a literal is meant.
  Operand SourceArg(const Arg& arg, uint32_t bytes, Type type = Type::kNone);
  Operand PredicateArg(const Arg& arg, Instruction& in);
  Operand Special(std::string_view name, uint32_t width);
  // Sets the operands of an instruction that has more of them than fields.
  void SetList(Instruction& in, const std::vector<Operand>& list);

  // lowering_variables.cc
  Place FindVariable(std::string_view name);
  Place Materialise(const Variable& variable, std::unordered_map<std::string_view, Place>& into);
  uint32_t SharedIndex(const Variable& variable);
  // The address of a variable within its space (globals: everywhere) as an operand.
  Operand Address(std::string_view name, int64_t addend, uint32_t width);
  void FinishShared();

  // lowering_arithmetic.cc
  void Arithmetic(const Statement& statement, const Opcode& op, Instruction& in);
  void NeedOperands(const Statement& statement, size_t count);
  void SetPredicateOperands(const Statement& statement, const Opcode& op, Instruction& in);
  void SetOperands(const Statement& statement, const Opcode& op, Instruction& in);
  Operand LowHalf(const Arg& arg);
  void ConvertOperands(const Statement& statement, const Opcode& op, Instruction& in);
  bool ParticularOperands(const Statement& statement, const Opcode& op, Instruction& in);
  void GeneralOperands(const Statement& statement, const Opcode& op, Instruction& in);
  void Move(const Statement& statement, const Opcode& op, Instruction& in);
  void MoveVector(const Statement& statement, const Opcode& op, Instruction& in);

  // lowering_lanes.cc
  void LaneOperation(const Statement& statement, const Opcode& op, Instruction& in);

  // lowering_memory.cc
  void MemoryAddress(const Arg& arg, const Opcode& op, Instruction& in, bool async_global = false);
  void List(const Arg& arg, Instruction& in, bool definition, uint32_t& slot_bytes, Type literal);
  void LoadStore(const Statement& statement, const Opcode& op, Instruction& in);
  void ParameterLoad(const Statement& statement, const Opcode& op, Instruction& in, uint32_t offset);
  void AtomicAccess(const Statement& statement, const Opcode& op, Instruction& in);
  void VectorAtomic(const Statement& statement, const Opcode& op, Instruction& in);
  void ConvertAddress(const Statement& statement, const Opcode& op, Instruction& in);
  Operand SizeUnless(const Arg& predicate, uint32_t size);
  void AsyncCopy(const Statement& statement, const Opcode& op, Instruction& in);

  // lowering_warp.cc
  void WarpOperation(const Statement& statement, const Opcode& op, Instruction& in);
  void BarrierOperation(const Statement& statement, const Opcode& op, Instruction& in);

  // lowering_bulk.cc
  void BulkCopyOperation(const Statement& statement, const Opcode& op, Instruction& in);

  // lowering_image.cc
  void ImageOperation(const Statement& statement, const Opcode& op, Instruction& in);

  // lowering_mbarrier.cc
  void PhaseBarrierOperation(const Statement& statement, const Opcode& op, Instruction& in);

  // lowering_matrix.cc
  void Matrix(const Statement& statement, const Opcode& op, Instruction& in);
  void AddAddressOffset(Instruction& in);

  // lowering_finish.cc: steps that need all of the code
  void FinishBlocks();
  void FinishRegisters();
  void FinishUniform();

  // lowering_unset.cc: finds the instructions that may read unset registers. `unset`: the registers that may be unset
  // at the start. Call it before registers have slots.
  void FinishUnset(const std::vector<uint32_t>& unset);

  // lowering_control.cc: `offsets` are the registers' slots
  void NoteNature(const Instruction& in);
  void FinishControl(const std::vector<Operand>& offsets);

  const PtxModule& module_;
  const std::unordered_map<std::string_view, uint32_t>& globals_;
  std::unordered_map<std::string_view, const Function*> functions_;
  Kernel kernel_;
  Instance* instance_ = nullptr;
  std::vector<Type> types_;  // by virtual register of all inlined functions
  std::unordered_map<std::pair<uint32_t, uint64_t>, uint32_t, HashConstant> constants_;
  std::map<std::tuple<int, bool, int, uint32_t, int64_t>, uint32_t> patched_;
  std::map<SpecialSlot::Kind, uint32_t> specials_;        // register
  std::unordered_map<uint32_t, int64_t> atomic_address_;  // by pc of an atomic: register of its address, -1 if constant
  std::unordered_map<std::string_view, uint32_t> shared_;  // index in shared_variables_
  std::vector<const Variable*> shared_variables_;
  std::vector<SharedFixup> shared_fixups_;
  std::vector<std::string_view> call_stack_;
  size_t lowered_ = 0;  // statements, labels and registers so far
  Operand all_lanes_ = 0;
  std::unordered_map<std::string_view, int> subroutine_index_;
  std::vector<std::pair<uint32_t, uint32_t>> subroutine_registers_;  // [first, end) of each
  uint32_t stack_register_ = 0, frame_register_ = 0, stack_start_ = 0;
  std::vector<UnsetRule> unset_rules_;    // by pc
  std::vector<Nature> natures_;           // by pc
  std::vector<uint8_t> loads_registers_;  // by pc: see FinishUnset
  bool reads_clock_ = false;              // a multiprocessor's
  uint32_t frame_end_ = 0;                // of the subroutine being lowered
  bool in_subroutine_ = false;
  // of the instruction being lowered
  SourceLine where_;
  int ptx_line_ = 0;
  std::string_view opcode_;
  bool predicated_ = false;
  UnsetRule unset_rule_ = UnsetRule::kAny;
  bool from_parameters_ = false;  // a load of a kernel parameter, which is constant in a launch
  bool wide_product_ = false;
  bool float_atomic_ = false;
  float tensor_flops_ = 0;
};

}  // namespace kgrpo::simt
