#include "evaluator_sim/simt/lowering.h"

#include <cxxabi.h>
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "evaluator_sim/simt/cost.h"
#include "evaluator_sim/simt/handlers.h"
#include "evaluator_sim/simt/memory.h"
#include "evaluator_sim/simt/opcode.h"

namespace kgrpo::simt {
namespace {

constexpr uint32_t kSharedRedZone =
    128;  // between shared arrays; a multiple of all banks, so conflicts stay as they are
constexpr int kMaxInlineDepth = 64;

// "_ZZ9transposeE4tile" -> "tile"
std::string SourceName(std::string_view mangled) {
  if (!mangled.starts_with("_Z")) return std::string(mangled);
  int status = 0;
  char* text = abi::__cxa_demangle(std::string(mangled).c_str(), nullptr, nullptr, &status);
  std::string name = status == 0 && text != nullptr ? text : std::string(mangled);
  std::free(text);
  if (const size_t colon = name.rfind("::"); colon != std::string::npos) name = name.substr(colon + 2);
  return name;
}

class Lowerer {
 public:
  Lowerer(const PtxModule& module, const std::unordered_map<std::string_view, uint32_t>& globals)
      : module_(module), globals_(globals) {
    for (const Function& function : module.functions) {
      if (function.has_body) functions_[function.name] = &function;
    }
  }

  Kernel Run(const Function& entry) {
    kernel_.name = std::string(entry.name);
    all_lanes_ = Constant(4, 0xFFFFFFFFu);
    kernel_.mention_start.push_back(0);
    Instance instance;
    instance.function = &entry;
    uint32_t offset = 0;
    for (const Variable& parameter : entry.parameters) {
      offset = (offset + parameter.align - 1) / parameter.align * parameter.align;
      instance.variables[parameter.name] = {Space::kParam, offset};
      offset += static_cast<uint32_t>(parameter.bytes);
    }
    kernel_.parameter_bytes = offset;
    Body(instance, 0);
    FinishShared();
    FinishBlocks();
    FinishRegisters();
    FinishUniform();
    kernel_.local_bytes = (kernel_.local_bytes + 15) / 16 * 16;
    for (size_t i = 0; i < kernel_.code.size(); ++i) kernel_.code[i].index = static_cast<uint32_t>(i);
    return std::move(kernel_);
  }

 private:
  struct Place {
    Space space = Space::kGlobal;
    uint32_t offset = 0;
  };
  // One function as inlined at one call.
  struct Instance {
    const Function* function = nullptr;
    uint32_t register_base = 0;
    std::unordered_map<std::string_view, Place> variables;
    std::vector<uint32_t> label_pcs;
  };

  [[noreturn]] void Unsupported(const std::string& what) { Refuse(module_, where_, ptx_line_, what); }
  [[noreturn]] void Malformed(const std::string& what) {
    throw Error(KGRPO_ERROR_INVALID, "PTX line " + std::to_string(ptx_line_) + ": " + what);
  }

  // ---- constants ----

  // A broadcast immediate; `width` bytes a lane (4 or 8).
  Operand Constant(uint32_t width, uint64_t bits) {
    if (width == 4) bits &= 0xFFFFFFFFu;
    const auto [it, added] = constants_.try_emplace({width, bits}, 0);
    if (added) it->second = NewConstant(width, bits);
    return ~static_cast<Operand>(it->second);
  }
  uint32_t NewConstant(uint32_t width, uint64_t bits) {
    std::vector<uint32_t>& words = kernel_.constants;
    const auto at = static_cast<uint32_t>(words.size() * 4);
    for (int l = 0; l < kLanes; ++l) {
      words.push_back(static_cast<uint32_t>(bits));
      if (width == 8) words.push_back(static_cast<uint32_t>(bits >> 32));
    }
    return at;
  }
  Operand Patched(ConstantPatch patch) {
    const std::tuple<int, bool, int, uint32_t, int64_t> key{static_cast<int>(patch.kind), patch.wide,
                                                            static_cast<int>(patch.type), patch.value, patch.addend};
    const auto [it, added] = patched_.try_emplace(key, 0);
    if (added) {
      patch.at = it->second = NewConstant(patch.wide ? 8 : 4, 0);
      kernel_.patches.push_back(patch);
    }
    return ~static_cast<Operand>(it->second);
  }

  // ---- registers ----

  uint32_t NewRegister(Type type) {
    types_.push_back(type);
    return static_cast<uint32_t>(types_.size() - 1);
  }
  // Notes that the instruction emitted next reads or writes `reg`.
  void Mention(uint32_t reg, bool definition) { kernel_.mentions.push_back(reg * 2 + (definition ? 1 : 0)); }
  Type TypeOf(const Arg& arg) const { return instance_->function->registers[static_cast<size_t>(arg.reg)]; }
  uint32_t SlotBytes(const Arg& arg) const {
    return arg.kind == Arg::Kind::kRegister && TypeBytes(TypeOf(arg)) == 8 ? 8 : 4;
  }
  Operand Register(int reg, bool definition) {
    const uint32_t id = instance_->register_base + static_cast<uint32_t>(reg);
    if (types_[id] == Type::kB128) Unsupported("a 128-bit register");
    Mention(id, definition);
    return static_cast<Operand>(id);
  }

  // A destination; null operand for '_'.
  Operand Target(const Arg& arg) {
    if (arg.kind == Arg::Kind::kSink) return static_cast<Operand>(Scratch());
    if (arg.kind != Arg::Kind::kRegister) Malformed("a result that is not a register");
    return Register(arg.reg, true);
  }
  Operand TargetOf(const Arg& arg, uint32_t bytes) {
    if (arg.kind == Arg::Kind::kRegister && SlotBytes(arg) != (bytes == 8 ? 8u : 4u))
      Unsupported("a register of another width than its instruction");
    return Target(arg);
  }
  uint32_t Scratch() {
    const uint32_t reg = NewRegister(Type::kB64);
    Mention(reg, true);
    return reg;
  }
  Operand SecondTarget(const Arg& arg) { return arg.second >= 0 ? Register(arg.second, true) : kNoOperand; }

  // A source whose lanes have `bytes` bytes. Type kF32/kF64 tells how a literal is meant.
  Operand SourceArg(const Arg& arg, uint32_t bytes, Type type = Type::kNone) {
    const uint32_t width = bytes == 8 ? 8 : 4;
    switch (arg.kind) {
      case Arg::Kind::kRegister:
        if (TypeOf(arg) != Type::kPred && SlotBytes(arg) != width)
          Unsupported("a register of another width than its instruction");
        return Register(arg.reg, false);
      case Arg::Kind::kImmediate:
        return Constant(width, Literal(arg, type));
      case Arg::Kind::kSpecial:
        return Special(arg.symbol, width);
      case Arg::Kind::kSymbol:
        return Address(arg.symbol, arg.offset, width);
      default:
        Malformed("an operand of the wrong kind");
    }
  }
  uint64_t Literal(const Arg& arg, Type type) {
    if (arg.number == Arg::Number::kDouble && type == Type::kF32) {
      double value;
      std::memcpy(&value, &arg.bits, 8);
      const auto narrow = static_cast<float>(value);
      uint32_t bits;
      std::memcpy(&bits, &narrow, 4);
      return bits;
    }
    if (arg.number == Arg::Number::kFloat && type == Type::kF64) {
      float value;
      const auto low = static_cast<uint32_t>(arg.bits);
      std::memcpy(&value, &low, 4);
      const double wide = value;
      uint64_t bits;
      std::memcpy(&bits, &wide, 8);
      return bits;
    }
    return arg.bits;
  }
  Operand PredicateArg(const Arg& arg, Instruction& in) {
    if (arg.negated) in.flags |= kFlagNegateC;
    if (arg.kind == Arg::Kind::kImmediate) return Constant(4, arg.bits != 0 ? 0xFFFFFFFFu : 0u);
    if (arg.kind != Arg::Kind::kRegister || TypeOf(arg) != Type::kPred) Malformed("expected a predicate");
    return Register(arg.reg, false);
  }

  Operand Special(std::string_view name, uint32_t width) {
    static const std::unordered_map<std::string_view, ConstantPatch::Kind> kUniform = {
        {"%nctaid.x", ConstantPatch::Kind::kGridX},
        {"%nctaid.y", ConstantPatch::Kind::kGridY},
        {"%nctaid.z", ConstantPatch::Kind::kGridZ},
        {"%ntid.x", ConstantPatch::Kind::kBlockX},
        {"%ntid.y", ConstantPatch::Kind::kBlockY},
        {"%ntid.z", ConstantPatch::Kind::kBlockZ},
        {"%dynamic_smem_size", ConstantPatch::Kind::kDynamicShared},
        {"%total_smem_size", ConstantPatch::Kind::kTotalShared},
        {"%nwarpid", ConstantPatch::Kind::kWarps},
        {"%envreg1", ConstantPatch::Kind::kGridWorkspaceHigh},
        {"%envreg2", ConstantPatch::Kind::kGridWorkspaceLow}};
    static const std::unordered_map<std::string_view, SpecialSlot::Kind> kLaneWise = {
        {"%tid.x", SpecialSlot::Kind::kTidX},
        {"%tid.y", SpecialSlot::Kind::kTidY},
        {"%tid.z", SpecialSlot::Kind::kTidZ},
        {"%ctaid.x", SpecialSlot::Kind::kCtaX},
        {"%ctaid.y", SpecialSlot::Kind::kCtaY},
        {"%ctaid.z", SpecialSlot::Kind::kCtaZ},
        {"%laneid", SpecialSlot::Kind::kLane},
        {"%warpid", SpecialSlot::Kind::kWarp},
        {"%smid", SpecialSlot::Kind::kSm},
        {"%lanemask_eq", SpecialSlot::Kind::kLaneMaskEq},
        {"%lanemask_le", SpecialSlot::Kind::kLaneMaskLe},
        {"%lanemask_lt", SpecialSlot::Kind::kLaneMaskLt},
        {"%lanemask_ge", SpecialSlot::Kind::kLaneMaskGe},
        {"%lanemask_gt", SpecialSlot::Kind::kLaneMaskGt}};
    if (name == "%nsmid") return Constant(width, 132);
    if (name == "%gridid") return Constant(width, 0);
    if (width != 4) Unsupported("special register " + std::string(name) + " in 64 bits");
    if (const auto it = kUniform.find(name); it != kUniform.end()) {
      kernel_.uses_grid_sync |= it->second == ConstantPatch::Kind::kGridWorkspaceLow;
      ConstantPatch patch;
      patch.kind = it->second;
      return Patched(patch);
    }
    const auto it = kLaneWise.find(name);
    if (it == kLaneWise.end()) Unsupported("special register " + std::string(name));
    const auto [slot, added] = specials_.try_emplace(it->second, 0);
    if (added) slot->second = NewRegister(Type::kB32);
    Mention(slot->second, false);
    return static_cast<Operand>(slot->second);
  }

  // ---- variables ----

  Place FindVariable(std::string_view name) {
    if (const auto it = instance_->variables.find(name); it != instance_->variables.end()) return it->second;
    for (const Variable& variable : instance_->function->variables) {
      if (variable.name == name) return Materialise(variable, instance_->variables);
    }
    for (const Variable& variable : module_.variables) {
      if (variable.name != name) continue;
      if (variable.space == Variable::Space::kShared) return Materialise(variable, instance_->variables);
      if (const auto it = globals_.find(name); it != globals_.end()) return {Space::kGlobal, it->second};
    }
    if (functions_.contains(name))
      Unsupported("the address of function '" + std::string(name) + "' (a call through a function pointer)");
    Unsupported("'" + std::string(name) + "', which this module does not define,");
  }
  Place Materialise(const Variable& variable, std::unordered_map<std::string_view, Place>& into) {
    Place place;
    if (variable.space == Variable::Space::kShared) {
      place = {Space::kShared, SharedIndex(variable)};
    } else {  // .local, and .param of a call, which live in the thread's frame
      uint32_t& end = kernel_.local_bytes;
      end = (end + variable.align - 1) / variable.align * variable.align;
      place = {Space::kLocal, end};
      end += static_cast<uint32_t>(variable.bytes);
    }
    into[variable.name] = place;
    return place;
  }
  uint32_t SharedIndex(const Variable& variable) {
    const auto [it, added] = shared_.try_emplace(variable.name, static_cast<uint32_t>(shared_variables_.size()));
    if (added) shared_variables_.push_back(&variable);
    return it->second;
  }
  // The address of a variable within its space (globals: everywhere) as an operand.
  Operand Address(std::string_view name, int64_t addend, uint32_t width) {
    const Place place = FindVariable(name);
    switch (place.space) {
      case Space::kGlobal: {
        ConstantPatch patch;
        patch.kind = ConstantPatch::Kind::kGlobal;
        patch.wide = width == 8;
        patch.value = place.offset;
        patch.addend = addend;
        if (width != 8) Unsupported("a 32-bit address of a global variable");
        return Patched(patch);
      }
      case Space::kShared: {
        const uint32_t at = NewConstant(width, 0);
        shared_fixups_.push_back({at, width, place.offset, addend});
        return ~static_cast<Operand>(at);
      }
      default:
        return Constant(width, static_cast<uint64_t>(place.offset) + static_cast<uint64_t>(addend));
    }
  }

  // Lays out the shared arrays with red zones between, the dynamic one last, and fills in their addresses.
  void FinishShared() {
    std::vector<uint32_t> offsets(shared_variables_.size());
    uint32_t end = 0, packed = 0;
    for (const bool dynamic : {false, true}) {
      if (dynamic) end = (end + 127) / 128 * 128;
      for (size_t i = 0; i < shared_variables_.size(); ++i) {
        const Variable& variable = *shared_variables_[i];
        if ((variable.bytes == 0) != dynamic) continue;
        if (dynamic) {
          offsets[i] = end;  // all dynamic arrays are the same memory
          continue;
        }
        end = (end + variable.align - 1) / variable.align * variable.align;
        packed =
            (packed + variable.align - 1) / variable.align * variable.align + static_cast<uint32_t>(variable.bytes);
        offsets[i] = end;
        kernel_.shared.push_back({SourceName(variable.name), end, static_cast<uint32_t>(variable.bytes)});
        end += static_cast<uint32_t>(variable.bytes) + kSharedRedZone;
      }
    }
    kernel_.static_shared_bytes = packed;
    kernel_.shared_layout_bytes = end;
    for (const SharedFixup& fixup : shared_fixups_) {
      const uint64_t value = offsets[fixup.variable] + static_cast<uint64_t>(fixup.addend);
      for (uint32_t l = 0; l < kLanes; ++l) {
        uint32_t* word = &kernel_.constants[fixup.at / 4 + l * (fixup.width / 4)];
        word[0] = static_cast<uint32_t>(value);
        if (fixup.width == 8) word[1] = static_cast<uint32_t>(value >> 32);
      }
    }
  }

  // ---- code ----

  void Emit(const Instruction& in, const Cost& cost) {
    kernel_.code.push_back(in);
    kernel_.costs.push_back(cost);
    kernel_.lines.push_back(where_);
    kernel_.mention_start.push_back(static_cast<uint32_t>(kernel_.mentions.size()));
    kernel_.is_wide_product.push_back(wide_product_ ? 1 : 0);
    kernel_.float_atomic.push_back(float_atomic_ ? 1 : 0);
    float_atomic_ = false;
    kernel_.tensor_flops.push_back(tensor_flops_);
    wide_product_ = false;
    tensor_flops_ = 0;
  }

  void Body(Instance& instance, int depth) {
    Instance* outer = std::exchange(instance_, &instance);
    const Function& function = *instance.function;
    instance.register_base = static_cast<uint32_t>(types_.size());
    for (const Type type : function.registers) NewRegister(type);
    instance.label_pcs.assign(function.labels.size(), 0);
    std::unordered_map<std::string_view, uint32_t> labels;
    for (uint32_t i = 0; i < function.labels.size(); ++i) labels[function.labels[i]] = i;
    std::vector<std::pair<uint32_t, uint32_t>> branches;  // (pc, label)
    std::vector<std::pair<uint32_t, uint32_t>> tables;    // (index in branch_targets, label)
    std::vector<uint32_t> returns;
    auto label = [&](std::string_view name) {
      const auto it = labels.find(name);
      if (it == labels.end()) Malformed("no label '" + std::string(name) + "'");
      return it->second;
    };
    for (const Statement& statement : function.body) {
      if (statement.label >= 0)
        instance.label_pcs[static_cast<size_t>(statement.label)] = static_cast<uint32_t>(kernel_.code.size());
      for (const int more : statement.more_labels)
        instance.label_pcs[static_cast<size_t>(more)] = static_cast<uint32_t>(kernel_.code.size());
      if (statement.opcode.empty()) continue;
      where_ = statement.where;
      ptx_line_ = statement.ptx_line;
      Instruction in;
      predicated_ = statement.predicate >= 0;
      in.predicate = all_lanes_;
      if (predicated_) {
        in.predicate = Register(statement.predicate, false);
        in.flip = statement.predicate_negated ? 0xFFFFFFFFu : 0u;
      }
      const Opcode op(statement.opcode);
      if (op.base == "bra") {
        if (statement.args.size() != 1 || statement.args[0].kind != Arg::Kind::kSymbol)
          Malformed("a branch without a label");
        branches.emplace_back(static_cast<uint32_t>(kernel_.code.size()), label(statement.args[0].symbol));
        in.run = &Branch;
        Emit(in, CostOf(op));
      } else if (op.base == "brx") {
        IndexedBranch(statement, in, op, label, tables);
      } else if (op.base == "ret" && depth > 0) {
        returns.push_back(static_cast<uint32_t>(kernel_.code.size()));
        in.run = &Branch;
        Emit(in, CostOf(op));
      } else if (op.base == "call") {
        Call(statement, in, depth);
      } else {
        Plain(statement, op, in);
      }
    }
    predicated_ = false;
    const auto end = static_cast<uint32_t>(kernel_.code.size());
    if (depth == 0) {  // running off the end is an exit
      Instruction in;
      in.predicate = all_lanes_;
      in.run = &Exit;
      Emit(in, {});
    }
    for (const auto& [pc, index] : branches) SetTarget(pc, instance.label_pcs[index]);
    for (const auto& [at, index] : tables) {
      kernel_.branch_targets[at] = instance.label_pcs[index];
    }
    for (const uint32_t pc : returns) SetTarget(pc, end);
    instance_ = outer;
  }
  void SetTarget(uint32_t pc, uint32_t target) { kernel_.code[pc].extra = target; }

  template <typename FindLabel>
  void IndexedBranch(const Statement& statement, Instruction& in, const Opcode& op, FindLabel label,
                     std::vector<std::pair<uint32_t, uint32_t>>& tables) {
    in.run = &BranchIndexed;
    in.a = SourceArg(statement.args.at(0), 4);
    const std::string_view name = statement.args.at(1).symbol;
    for (const BranchTable& table : instance_->function->tables) {
      if (table.name != name) continue;
      in.extra = static_cast<uint32_t>(kernel_.branch_targets.size());
      in.offset = static_cast<int64_t>(table.targets.size());
      for (const std::string_view target : table.targets) {
        tables.emplace_back(static_cast<uint32_t>(kernel_.branch_targets.size()), label(target));
        kernel_.branch_targets.push_back(0);
      }
    }
    Emit(in, CostOf(op));
  }

  void Call(const Statement& statement, Instruction& in, int depth) {
    if (statement.callee == "vprintf") {
      in.run = &PrintFormatted;
      in.a = FrameAddress(statement.arguments.at(0));
      in.b = FrameAddress(statement.arguments.at(1));
      in.c = statement.results.empty() ? kNoOperand : FrameAddress(statement.results[0]);
      Emit(in, {Pipe::kControl, 0, 20, 20});
      return;
    }
    if (statement.callee == "__assertfail") {
      in.run = &AssertFailed;
      in.a = FrameAddress(statement.arguments.at(0));
      in.b = FrameAddress(statement.arguments.at(1));
      in.c = FrameAddress(statement.arguments.at(2));
      Emit(in, {Pipe::kControl, 0, 20, 20});
      return;
    }
    const auto it = functions_.find(statement.callee);
    if (it == functions_.end())
      Unsupported("a call of '" + SourceName(statement.callee) + "', which is no part of the kernel's source,");
    if (depth >= kMaxInlineDepth ||
        std::find(call_stack_.begin(), call_stack_.end(), statement.callee) != call_stack_.end()) {
      Unsupported("recursion of '" + SourceName(statement.callee) + "'");
    }
    const Function& callee = *it->second;
    if (callee.parameters.size() != statement.arguments.size() || callee.results.size() != statement.results.size()) {
      Malformed("a call with the wrong number of arguments");
    }
    Instance instance;
    instance.function = &callee;
    for (size_t i = 0; i < callee.parameters.size(); ++i)
      instance.variables[callee.parameters[i].name] = FindVariable(statement.arguments[i]);
    for (size_t i = 0; i < callee.results.size(); ++i)
      instance.variables[callee.results[i].name] = FindVariable(statement.results[i]);
    uint32_t skip = 0;
    if (predicated_) {  // inlined code is jumped over where the predicate is false
      in.run = &Branch;
      in.flip = ~in.flip;
      skip = static_cast<uint32_t>(kernel_.code.size());
      Emit(in, {Pipe::kControl, 0, 1, 1});
    }
    const bool predicated = predicated_;
    const SourceLine where = where_;
    call_stack_.push_back(statement.callee);
    Body(instance, depth + 1);
    call_stack_.pop_back();
    where_ = where;
    if (predicated) SetTarget(skip, static_cast<uint32_t>(kernel_.code.size()));
  }
  Operand FrameAddress(std::string_view name) { return Constant(4, FindVariable(name).offset); }

  void Plain(const Statement& statement, const Opcode& op, Instruction& in);
  void Arithmetic(const Statement& statement, const Opcode& op, Instruction& in);
  void Move(const Statement& statement, const Opcode& op, Instruction& in);
  void LoadStore(const Statement& statement, const Opcode& op, Instruction& in);
  void ParameterLoad(const Statement& statement, const Opcode& op, Instruction& in, uint32_t offset);
  void AtomicAccess(const Statement& statement, const Opcode& op, Instruction& in);
  void ConvertAddress(const Statement& statement, const Opcode& op, Instruction& in);
  void WarpOperation(const Statement& statement, const Opcode& op, Instruction& in);
  void BarrierOperation(const Statement& statement, const Opcode& op, Instruction& in);
  void AsyncCopy(const Statement& statement, const Opcode& op, Instruction& in);
  void Matrix(const Statement& statement, const Opcode& op, Instruction& in);
  void MemoryAddress(const Arg& arg, const Opcode& op, Instruction& in, bool async_global = false);
  void List(const Arg& arg, Instruction& in, bool definition, uint32_t& slot_bytes, Type literal);
  Space SpaceOf(const Opcode& op) const;

  void FinishRegisters() {
    std::vector<uint32_t> whole;
    for (const auto& [kind, reg] : specials_) whole.push_back(reg);
    std::vector<Operand> offsets;
    uint32_t most_alive = 0;
    kernel_.register_bytes = AssignSlots(kernel_, types_, whole, offsets, most_alive);
    kernel_.registers_estimate = most_alive;
    kernel_.virtual_registers = static_cast<uint32_t>(types_.size());
    auto place = [&](Operand& operand) {
      if (operand >= 0 && operand != kNoOperand) operand = offsets[static_cast<size_t>(operand)];
    };
    for (Instruction& in : kernel_.code) {
      for (Operand* operand : {&in.d, &in.a, &in.b, &in.c, &in.e, &in.predicate}) place(*operand);
    }
    for (Operand& operand : kernel_.operands) place(operand);
    for (const auto& [kind, reg] : specials_) kernel_.specials.push_back({kind, static_cast<uint32_t>(offsets[reg])});
  }

  // Which atomics have an address that all lanes of a warp share: it derives from nothing that differs among lanes.
  void FinishUniform() {
    const size_t n = kernel_.code.size();
    std::vector<uint8_t> varies(types_.size(), 0);
    for (const auto& [kind, reg] : specials_) {
      varies[reg] =
          kind != SpecialSlot::Kind::kCtaX && kind != SpecialSlot::Kind::kCtaY && kind != SpecialSlot::Kind::kCtaZ;
    }
    auto sources_vary = [&](size_t pc) {
      for (uint32_t m = kernel_.mention_start[pc]; m < kernel_.mention_start[pc + 1]; ++m) {
        if ((kernel_.mentions[m] & 1u) == 0 && varies[kernel_.mentions[m] / 2] != 0) return true;
      }
      return false;
    };
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t pc = 0; pc < n; ++pc) {
        const auto latency = static_cast<LatencyClass>(kernel_.costs[pc].latency);
        const bool loads = latency == LatencyClass::kGlobal || latency == LatencyClass::kShared ||
                           latency == LatencyClass::kLocal || latency == LatencyClass::kAtomic ||
                           latency == LatencyClass::kShuffle;
        if (!loads && !sources_vary(pc)) continue;
        for (uint32_t m = kernel_.mention_start[pc]; m < kernel_.mention_start[pc + 1]; ++m) {
          if ((kernel_.mentions[m] & 1u) == 0 || varies[kernel_.mentions[m] / 2] != 0) continue;
          varies[kernel_.mentions[m] / 2] = 1;
          changed = true;
        }
      }
    }
    kernel_.uniform_address.assign(n, 0);
    for (size_t pc = 0; pc < n; ++pc) {
      if (!atomic_address_.contains(static_cast<uint32_t>(pc))) continue;
      const int64_t reg = atomic_address_[static_cast<uint32_t>(pc)];
      kernel_.uniform_address[pc] = reg < 0 || varies[static_cast<size_t>(reg)] == 0 ? 1 : 0;
    }
  }

  void FinishBlocks() {
    const size_t n = kernel_.code.size();
    std::vector<bool> leader(n + 1, false);
    leader[0] = true;
    for (size_t i = 0; i < n; ++i) {
      const Instruction& in = kernel_.code[i];
      if (in.run == &Branch) {
        leader[in.extra] = true;
        leader[i + 1] = true;
      }
      if (in.run == &BranchIndexed || in.run == &Exit || in.run == &Barrier) leader[i + 1] = true;
    }
    for (const uint32_t target : kernel_.branch_targets) leader[target] = true;
    for (uint32_t i = 0; i < n; ++i) {
      if (!leader[i]) continue;
      uint32_t last = i + 1;
      while (last < n && !leader[last]) ++last;
      kernel_.blocks.push_back({i, last});
    }
  }

  struct SharedFixup {
    uint32_t at, width, variable;
    int64_t addend;
  };
  struct HashConstant {
    size_t operator()(const std::pair<uint32_t, uint64_t>& key) const {
      return std::hash<uint64_t>{}(key.second * 0x9E3779B97F4A7C15ull + key.first);
    }
  };

  const PtxModule& module_;
  const std::unordered_map<std::string_view, uint32_t>& globals_;
  std::unordered_map<std::string_view, const Function*> functions_;
  Kernel kernel_;
  Instance* instance_ = nullptr;
  std::vector<Type> types_;  // by virtual register of all inlined functions
  std::unordered_map<std::pair<uint32_t, uint64_t>, uint32_t, HashConstant> constants_;
  std::map<std::tuple<int, bool, int, uint32_t, int64_t>, uint32_t> patched_;
  std::map<SpecialSlot::Kind, uint32_t> specials_;
  std::unordered_map<uint32_t, int64_t>
      atomic_address_;  // pc of an atomic -> register of its address, -1 where constant
  std::unordered_map<std::string_view, uint32_t> shared_;
  std::vector<const Variable*> shared_variables_;
  std::vector<SharedFixup> shared_fixups_;
  std::vector<std::string_view> call_stack_;
  SourceLine where_;
  int ptx_line_ = 0;
  bool predicated_ = false;
  bool wide_product_ = false;  // of the instruction being lowered
  bool float_atomic_ = false;
  float tensor_flops_ = 0;
  Operand all_lanes_ = 0;
};

// ---- instructions ----

void Lowerer::Plain(const Statement& statement, const Opcode& op, Instruction& in) {
  const std::string_view base = op.base;
  const std::vector<Arg>& args = statement.args;
  if (base == "ld" || base == "ldu" || base == "st") return LoadStore(statement, op, in);
  if (base == "mov") return Move(statement, op, in);
  if (base == "atom" || base == "red") return AtomicAccess(statement, op, in);
  if (base == "cvta" || base == "isspacep") return ConvertAddress(statement, op, in);
  if (base == "shfl" || base == "vote" || base == "match" || base == "redux" || base == "activemask" ||
      base == "elect") {
    return WarpOperation(statement, op, in);
  }
  if (base == "bar" || base == "barrier") return BarrierOperation(statement, op, in);
  if (base == "cp") return AsyncCopy(statement, op, in);
  if (base == "ldmatrix" || base == "stmatrix" || base == "mma" || base == "wmma") return Matrix(statement, op, in);
  if (base == "ret" || base == "exit") {
    in.run = &Exit;
  } else if (base == "trap" || base == "brkpt") {
    in.run = &TrapOperation;
  } else if (base == "membar" || base == "fence") {
    if (op.Has("proxy") || op.Has("mbarrier_init")) Unsupported("'" + std::string(statement.opcode) + "'");
    in.run = &Fence;
  } else if (base == "nanosleep") {
    in.run = &NanoSleep;
  } else if (base == "prefetch" || base == "prefetchu" || base == "discard" || base == "applypriority" ||
             base == "pmevent") {
    in.run = &Prefetch;
  } else {
    return Arithmetic(statement, op, in);
  }
  if (!args.empty() && in.run == &Prefetch) in.a = kNoOperand;
  Emit(in, CostOf(op));
}

void Lowerer::Arithmetic(const Statement& statement, const Opcode& op, Instruction& in) {
  const AluChoice choice = FindAlu(op);
  if (choice.handler == nullptr) Unsupported("PTX instruction '" + std::string(statement.opcode) + "'");
  in.run = choice.handler;
  const std::vector<Arg>& args = statement.args;
  const std::string_view base = op.base;
  const uint32_t bytes = TypeBytes(op.type());
  const Type type = op.type();
  auto need = [&](size_t count) {
    if (args.size() != count)
      Malformed("'" + std::string(statement.opcode) + "' with " + std::to_string(args.size()) + " operands");
  };
  if (choice.round >= 0) {
    in.inner = in.run;
    in.run = &RunRounded;
    in.offset = choice.round;
  }
  if (base == "setp") {
    if (args.size() < 3) need(3);
    in.a = SourceArg(args[1], bytes, type);
    in.b = SourceArg(args[2], bytes, type);
    if (args.size() > 3) {
      in.c = PredicateArg(args[3], in);
      in.size = op.Has("and") ? 1 : op.Has("or") ? 2 : 3;
    }
    in.offset = type == Type::kF16x2 || type == Type::kBf16x2 ? 1 : 0;
    in.d = args[0].kind == Arg::Kind::kSink ? kNoOperand : Target(args[0]);
    in.e = SecondTarget(args[0]);
    if (in.offset == 1 && in.d == kNoOperand)
      Unsupported("'" + std::string(statement.opcode) + "' without its first result");
  } else if (base == "set") {
    need(3);
    const Type from = op.types[1];
    in.a = SourceArg(args[1], TypeBytes(from), from);
    in.b = SourceArg(args[2], TypeBytes(from), from);
    const bool pair = from == Type::kF16x2 || from == Type::kBf16x2;
    const bool half = pair || from == Type::kF16 || from == Type::kBf16;
    uint64_t one = type == Type::kF32 ? 0x3F800000u : 0xFFFFFFFFu;
    if (type == Type::kF16 || type == Type::kF16x2) one = 0x3C00u;
    if (type == Type::kBf16 || type == Type::kBf16x2) one = 0x3F80u;
    if (pair) {
      one = type == Type::kU32 || type == Type::kS32 ? 0xFFFFu | (uint64_t{0xFFFF0000u} << 32) : one | (one << 48);
    } else if (half) {
      one &= 0xFFFFFFFFu;
    }
    in.offset = static_cast<int64_t>(one);
    in.d = TargetOf(args[0], 4);
  } else if (base == "selp") {
    need(4);
    in.a = SourceArg(args[1], bytes, type);
    in.b = SourceArg(args[2], bytes, type);
    in.c = PredicateArg(args[3], in);
    in.d = TargetOf(args[0], bytes);
  } else if (base == "cvt") {
    const Type to = op.types[0], from = op.types[1];
    in.a = args.size() > 1 && args[1].kind == Arg::Kind::kRegister && TypeBytes(from) <= 4 && SlotBytes(args[1]) == 8
               ? (Unsupported("a conversion from part of a 64-bit register"), 0)
               : SourceArg(args.at(1), TypeBytes(from), from);
    if (args.size() > 2) in.b = SourceArg(args[2], TypeBytes(from), from);
    in.d = TargetOf(args[0], TypeBytes(to));
  } else if (type == Type::kPred) {
    in.a = PredicateArg(args.at(1), in);
    if (args[1].negated) Unsupported("a negated source of '" + std::string(statement.opcode) + "'");
    if (args.size() > 2) in.b = PredicateArg(args[2], in);
    in.d = Target(args[0]);
  } else if (base == "testp") {
    need(2);
    in.a = SourceArg(args[1], bytes, type);
    in.d = Target(args[0]);
  } else if (base == "bfi") {
    need(5);
    in.a = SourceArg(args[1], bytes);
    in.b = SourceArg(args[2], bytes);
    in.c = SourceArg(args[3], 4);
    in.e = SourceArg(args[4], 4);
    in.d = TargetOf(args[0], bytes);
  } else if (base == "lop3") {
    need(5);
    in.a = SourceArg(args[1], 4);
    in.b = SourceArg(args[2], 4);
    in.c = SourceArg(args[3], 4);
    in.offset = static_cast<int64_t>(args[4].bits);
    in.d = TargetOf(args[0], 4);
  } else if (base == "prmt") {
    need(4);
    in.a = SourceArg(args[1], 4);
    in.b = SourceArg(args[2], 4);
    in.c = SourceArg(args[3], 4);
    in.offset = op.Has("f4e")    ? 1
                : op.Has("b4e")  ? 2
                : op.Has("rc8")  ? 3
                : op.Has("ecl")  ? 4
                : op.Has("ecr")  ? 5
                : op.Has("rc16") ? 6
                                 : 0;
    in.d = TargetOf(args[0], 4);
  } else if (base == "slct") {
    need(4);
    in.a = SourceArg(args[1], bytes, type);
    in.b = SourceArg(args[2], bytes, type);
    in.c = SourceArg(args[3], 4, op.types[1]);
    in.d = TargetOf(args[0], bytes);
  } else {
    // The general form: a result, then up to three sources of the instruction's type, with a few exceptions of width.
    const bool wide = op.Has("wide");
    wide_product_ = wide;
    const uint32_t doubled = wide ? bytes * 2 : bytes;
    const bool counts = base == "popc" || base == "clz" || base == "bfind";
    if (args.size() < 2 || args.size() > 4) need(3);
    auto width = [&](size_t source) -> uint32_t {
      if (source >= 1 && (base == "shl" || base == "shr" || base == "bfe")) return 4;
      if (source == 2 && wide) return doubled;
      return bytes;
    };
    in.a = SourceArg(args[1], width(0), type);
    if (args.size() > 2) in.b = SourceArg(args[2], width(1), type);
    if (args.size() > 3) in.c = SourceArg(args[3], width(2), type);
    in.d = TargetOf(args[0], counts ? 4 : doubled);
    if (base == "addc" || base == "subc" || base == "madc") in.size |= 1;
    if (op.Has("cc")) in.size |= 2;
  }
  Emit(in, CostOf(op));
}

void Lowerer::Move(const Statement& statement, const Opcode& op, Instruction& in) {
  const std::vector<Arg>& args = statement.args;
  if (args.size() != 2) Malformed("mov with " + std::to_string(args.size()) + " operands");
  const uint32_t bytes = TypeBytes(op.type());
  // Packing and unpacking of vectors: one instruction an element, through shifts.
  if (args[0].kind == Arg::Kind::kVector || args[1].kind == Arg::Kind::kVector) {
    const bool unpack = args[0].kind == Arg::Kind::kVector;
    const std::vector<Arg>& elements = unpack ? args[0].elements : args[1].elements;
    const auto count = static_cast<uint32_t>(elements.size());
    if (count == 0 || bytes % count != 0 || bytes > 8)
      Unsupported("'" + std::string(statement.opcode) + "' of a vector");
    const uint32_t element = bytes / count;
    in.size = static_cast<uint8_t>(element);
    in.count = static_cast<uint8_t>(count);
    in.run = unpack ? FindUnpack(bytes) : FindPack(bytes);
    std::vector<Operand> list;
    if (unpack) {
      in.a = SourceArg(args[1], bytes);
      for (const Arg& arg : elements)
        list.push_back(arg.kind == Arg::Kind::kSink ? kNoOperand : TargetOf(arg, element));
    } else {
      for (const Arg& arg : elements) list.push_back(SourceArg(arg, element));
      in.d = TargetOf(args[0], bytes);
    }
    in.extra = static_cast<uint32_t>(kernel_.operands.size());
    kernel_.operands.insert(kernel_.operands.end(), list.begin(), list.end());
    Emit(in, element == 4 ? Cost{}
                          : Cost{Pipe::kInt, static_cast<uint8_t>(LatencyClass::kAlu), unpack ? 0.0f : 1.0f,
                                 unpack ? 0.0f : 1.0f});
    return;
  }
  if (args[1].kind == Arg::Kind::kSpecial) {
    const std::string_view name = args[1].symbol;
    if (name == "%clock" || name == "%clock_hi" || name == "%clock64" || name == "%globaltimer" ||
        name == "%globaltimer_lo") {
      in.run = bytes == 8 ? &ReadClock64 : &ReadClock32;
      in.d = TargetOf(args[0], bytes);
      Emit(in, {Pipe::kControl, 0, 1, 1});
      return;
    }
  }
  in.run = FindAlu(op).handler;
  if (in.run == nullptr) Unsupported("PTX instruction '" + std::string(statement.opcode) + "'");
  in.a = op.type() == Type::kPred ? PredicateArg(args[1], in) : SourceArg(args[1], bytes, op.type());
  in.d = op.type() == Type::kPred ? Target(args[0]) : TargetOf(args[0], bytes);
  Emit(in, CostOf(op));
}

Space Lowerer::SpaceOf(const Opcode& op) const {
  if (op.Has("global")) return Space::kGlobal;
  if (op.Has("shared") || op.Has("shared::cta")) return Space::kShared;
  if (op.Has("local")) return Space::kLocal;
  if (op.Has("const")) return Space::kConst;
  if (op.Has("param") || op.Has("param::entry") || op.Has("param::func")) return Space::kParam;
  return Space::kGeneric;
}

// Sets a and offset (and for a symbol's space, space) from an address operand.
void Lowerer::MemoryAddress(const Arg& arg, const Opcode& op, Instruction& in, bool async_global) {
  if (arg.kind != Arg::Kind::kAddress) Malformed("expected an address");
  in.space = static_cast<uint8_t>(async_global ? Space::kGlobal : SpaceOf(op));
  if (arg.reg >= 0) {
    const Type type = instance_->function->registers[static_cast<size_t>(arg.reg)];
    in.a = Register(arg.reg, false);
    if (TypeBytes(type) == 4) in.flags |= kFlagShared32;
    in.offset = arg.offset;
  } else if (!arg.symbol.empty()) {
    const Place place = FindVariable(arg.symbol);
    if (static_cast<Space>(in.space) == Space::kParam && place.space == Space::kLocal)
      in.space = static_cast<uint8_t>(Space::kLocal);
    in.a = Address(arg.symbol, arg.offset, 8);
    in.offset = 0;
  } else {
    in.a = Constant(8, static_cast<uint64_t>(arg.offset));
    in.offset = 0;
  }
}

// The registers of a vector access, or the single one.
void Lowerer::List(const Arg& arg, Instruction& in, bool definition, uint32_t& slot_bytes, Type literal) {
  const std::vector<Arg> single{arg};
  const std::vector<Arg>& elements = arg.kind == Arg::Kind::kVector ? arg.elements : single;
  slot_bytes = 0;
  for (const Arg& element : elements) {
    if (element.kind == Arg::Kind::kRegister) slot_bytes = SlotBytes(element);
  }
  if (slot_bytes == 0) slot_bytes = TypeBytes(literal) == 8 ? 8 : 4;
  in.count = static_cast<uint8_t>(elements.size());
  std::vector<Operand> list;
  for (const Arg& element : elements) {
    if (definition) {
      list.push_back(element.kind == Arg::Kind::kSink ? kNoOperand : Target(element));
    } else {
      list.push_back(SourceArg(element, slot_bytes, literal));
    }
  }
  in.extra = static_cast<uint32_t>(kernel_.operands.size());
  kernel_.operands.insert(kernel_.operands.end(), list.begin(), list.end());
}

void Lowerer::LoadStore(const Statement& statement, const Opcode& op, Instruction& in) {
  const bool load = op.base != "st";
  const std::vector<Arg>& args = statement.args;
  if (args.size() < 2) Malformed("'" + std::string(statement.opcode) + "' without its operands");
  if (args.size() > 2 || op.Has("async") || op.Has("shared::cluster"))
    Unsupported("PTX instruction '" + std::string(statement.opcode) + "'");
  const Arg& address = load ? args[1] : args[0];
  const Arg& value = load ? args[0] : args[1];
  if (load && op.Has("param") && address.reg < 0 && !address.symbol.empty()) {
    const Place place = FindVariable(address.symbol);
    if (place.space == Space::kParam)
      return ParameterLoad(statement, op, in, place.offset + static_cast<uint32_t>(address.offset));
  }
  MemoryAddress(address, op, in);
  uint32_t slot_bytes = 4;
  in.size = static_cast<uint8_t>(TypeBytes(op.type()));
  if (in.size > 8) Unsupported("a 128-bit access");
  List(value, in, load, slot_bytes, op.type());
  if (op.Has("volatile") || op.Has("relaxed") || op.Has("acquire") || op.Has("release") || op.Has("cv") ||
      op.Has("mmio"))
    in.flags |= kFlagVolatile | kFlagBypassL1;
  if (op.Has("acquire")) in.flags |= kFlagAcquire;
  if (op.Has("release")) in.flags |= kFlagRelease;
  if (op.Has("cg")) in.flags |= kFlagBypassL1;
  if (op.Has("nc") || op.Has("const")) in.flags |= kFlagReadOnly;
  in.run = load ? FindLoad(op.type(), slot_bytes) : FindStore(op.type(), slot_bytes);
  if (in.run == nullptr) Unsupported("PTX instruction '" + std::string(statement.opcode) + "'");
  Cost cost = CostOf(op);
  if (static_cast<Space>(in.space) == Space::kLocal && op.Has("param")) cost = {};  // arguments travel in registers
  Emit(in, cost);
}

// A kernel's parameter at a constant offset is a constant of the launch.
void Lowerer::ParameterLoad(const Statement& statement, const Opcode& op, Instruction& in, uint32_t offset) {
  const Arg& value = statement.args[0];
  const std::vector<Arg> single{value};
  const std::vector<Arg>& elements = value.kind == Arg::Kind::kVector ? value.elements : single;
  const uint32_t bytes = TypeBytes(op.type());
  for (const Arg& element : elements) {
    if (element.kind != Arg::Kind::kSink) {
      ConstantPatch patch;
      patch.kind = ConstantPatch::Kind::kParameter;
      patch.type = op.type();
      patch.wide = SlotBytes(element) == 8;
      patch.value = offset;
      if (offset + bytes > kernel_.parameter_bytes) Malformed("a parameter load beyond the parameters");
      const Opcode move(patch.wide ? "mov.b64" : "mov.b32");
      in.run = FindAlu(move).handler;
      in.a = Patched(patch);
      in.d = Target(element);
      Emit(in, CostOf(move));
    }
    offset += bytes;
  }
}

void Lowerer::AtomicAccess(const Statement& statement, const Opcode& op, Instruction& in) {
  if (op.Has("shared::cluster") || op.Has("async"))
    Unsupported("PTX instruction '" + std::string(statement.opcode) + "'");
  in.run = FindAtomic(op);
  if (in.run == nullptr) Unsupported("PTX instruction '" + std::string(statement.opcode) + "'");
  const bool reduction = op.base == "red";
  float_atomic_ = op.type() >= Type::kF16 && op.type() <= Type::kF64;
  const std::vector<Arg>& args = statement.args;
  const size_t at = reduction ? 0 : 1;
  if (args.size() < at + 2) Malformed("'" + std::string(statement.opcode) + "' without its operands");
  MemoryAddress(args[at], op, in);
  atomic_address_[static_cast<uint32_t>(kernel_.code.size())] = in.a >= 0 ? in.a : -1;
  const Type type = op.type();
  const uint32_t bytes = TypeBytes(type);
  in.size = static_cast<uint8_t>(bytes);
  if (args[at + 1].kind == Arg::Kind::kVector) Unsupported("a vector atomic ('" + std::string(statement.opcode) + "')");
  in.b = SourceArg(args[at + 1], bytes, type);
  if (args.size() > at + 2) in.c = SourceArg(args[at + 2], bytes, type);
  if (reduction || args[0].kind == Arg::Kind::kSink) {
    in.flags |= kFlagNoReturn;
  } else {
    in.d = TargetOf(args[0], bytes);
  }
  if (op.Has("acquire") || op.Has("acq_rel")) in.flags |= kFlagAcquire;
  if (op.Has("release") || op.Has("acq_rel")) in.flags |= kFlagRelease;
  Emit(in, CostOf(op));
}

void Lowerer::ConvertAddress(const Statement& statement, const Opcode& op, Instruction& in) {
  const std::vector<Arg>& args = statement.args;
  const Space space = SpaceOf(op);
  const uint64_t window = space == Space::kShared  ? kSharedWindow
                          : space == Space::kLocal ? kLocalWindow
                          : space == Space::kParam ? kParamWindow
                                                   : 0;
  if (op.Has("shared::cluster")) Unsupported("a thread block cluster");
  if (op.base == "isspacep") {
    in.run = FindIsSpace(space);
    in.a = SourceArg(args.at(1), 8);
    in.d = Target(args[0]);
    Emit(in, {Pipe::kInt, static_cast<uint8_t>(LatencyClass::kAlu), 1, 1});
    return;
  }
  if (TypeBytes(op.type()) != 8) Unsupported("32-bit addresses");
  const bool to = op.Has("to");
  Opcode arithmetic(window == 0 ? "mov.b64" : to ? "sub.s64" : "add.s64");
  in.run = FindAlu(arithmetic).handler;
  in.a = SourceArg(args.at(1), 8);
  if (window != 0) in.b = Constant(8, window);
  in.d = TargetOf(args[0], 8);
  Emit(in, CostOf(op));
}

void Lowerer::WarpOperation(const Statement& statement, const Opcode& op, Instruction& in) {
  const std::vector<Arg>& args = statement.args;
  const std::string_view base = op.base;
  if (base == "activemask") {
    in.run = &ActiveMask;
    in.d = TargetOf(args.at(0), 4);
  } else if (!op.Has("sync")) {
    Unsupported("'" + std::string(statement.opcode) + "' (a warp operation without .sync)");
  } else if (base == "shfl") {
    if (args.size() != 5) Malformed("shfl with " + std::to_string(args.size()) + " operands");
    in.run = &Shuffle;
    in.size = static_cast<uint8_t>(op.Has("up")     ? ShuffleMode::kUp
                                   : op.Has("down") ? ShuffleMode::kDown
                                   : op.Has("bfly") ? ShuffleMode::kButterfly
                                                    : ShuffleMode::kIndex);
    in.a = SourceArg(args[1], 4);
    in.b = SourceArg(args[2], 4);
    in.c = SourceArg(args[3], 4);
    in.extra = static_cast<uint32_t>(kernel_.operands.size());
    kernel_.operands.push_back(SourceArg(args[4], 4));
    in.d = TargetOf(args[0], 4);
    in.e = SecondTarget(args[0]);
  } else if (base == "vote") {
    in.run = &Vote;
    in.size = static_cast<uint8_t>(op.Has("all")   ? VoteMode::kAll
                                   : op.Has("any") ? VoteMode::kAny
                                   : op.Has("uni") ? VoteMode::kUniform
                                                   : VoteMode::kBallot);
    in.c = PredicateArg(args.at(1), in);
    in.b = SourceArg(args.at(2), 4);
    if (op.Has("ballot")) {
      in.d = TargetOf(args[0], 4);
    } else {
      in.e = Target(args[0]);
    }
  } else if (base == "match") {
    in.run = op.Has("any") ? &MatchAny : &MatchAll;
    in.size = static_cast<uint8_t>(TypeBytes(op.type()));
    in.a = SourceArg(args.at(1), in.size);
    in.b = SourceArg(args.at(2), 4);
    in.d = TargetOf(args[0], 4);
    in.e = SecondTarget(args[0]);
  } else if (base == "elect") {
    in.run = &ElectOne;
    in.b = SourceArg(args.at(1), 4);
    in.d = TargetOf(args[0], 4);
    in.e = SecondTarget(args[0]);
  } else {
    in.run = FindRedux(op);
    if (in.run == nullptr) Unsupported("PTX instruction '" + std::string(statement.opcode) + "'");
    in.a = SourceArg(args.at(1), 4);
    in.b = SourceArg(args.at(2), 4);
    in.d = TargetOf(args[0], 4);
  }
  Emit(in, CostOf(op));
}

void Lowerer::BarrierOperation(const Statement& statement, const Opcode& op, Instruction& in) {
  const std::vector<Arg>& args = statement.args;
  if (op.Has("cluster")) Unsupported("a thread block cluster ('" + std::string(statement.opcode) + "')");
  if (op.Has("warp")) {
    in.run = &SyncWarp;
    in.b = SourceArg(args.at(0), 4);
    Emit(in, CostOf(op));
    return;
  }
  in.run = &simt::Barrier;
  if (op.base == "bar" || op.Has("aligned")) in.flags |= kFlagAligned;
  if (op.Has("red")) {
    const bool popc = op.Has("popc");
    in.offset = static_cast<int64_t>(op.Has("and") ? BarrierKind::kReduceAnd
                                     : popc        ? BarrierKind::kReducePopc
                                                   : BarrierKind::kReduceOr);
    in.a = SourceArg(args.at(1), 4);
    if (args.size() > 3) in.b = SourceArg(args[2], 4);
    in.c = PredicateArg(args.back(), in);
    if (popc) {
      in.d = TargetOf(args[0], 4);
    } else {
      in.e = Target(args[0]);
    }
  } else {
    in.offset = static_cast<int64_t>(op.Has("arrive") ? BarrierKind::kArrive : BarrierKind::kSync);
    in.a = SourceArg(args.at(0), 4);
    if (args.size() > 1) in.b = SourceArg(args[1], 4);
  }
  Emit(in, CostOf(op));
}

void Lowerer::AsyncCopy(const Statement& statement, const Opcode& op, Instruction& in) {
  const std::vector<Arg>& args = statement.args;
  if (!op.Has("async") || op.Has("bulk") || op.Has("mbarrier") || op.Has("reduce") || op.Has("tensor")) {
    Unsupported("PTX instruction '" + std::string(statement.opcode) + "' (bulk copies and their barriers)");
  }
  if (op.Has("commit_group")) {
    in.run = &CommitCopies;
    Emit(in, {Pipe::kControl, 0, 1, 1});
    return;
  }
  if (op.Has("wait_group") || op.Has("wait_all")) {
    in.run = &WaitCopies;
    in.offset = op.Has("wait_all") ? 0 : static_cast<int64_t>(args.at(0).bits);
    in.size = op.Has("wait_all") ? 1 : 0;
    Emit(in, {Pipe::kControl, static_cast<uint8_t>(LatencyClass::kBarrier), 1, 1});
    return;
  }
  if (args.size() < 3) Malformed("cp.async without its operands");
  Instruction shared;
  MemoryAddress(args[0], Opcode("st.shared"), shared);
  MemoryAddress(args[1], op, in, true);
  in.run = &CopyAsync;
  in.b = in.a;  // the global address
  const int64_t global_offset = in.offset;
  in.a = shared.a;
  in.offset = shared.offset;
  in.flags = shared.flags;
  in.space = shared.space;
  if (op.Has("cg")) in.flags |= kFlagBypassL1;
  if (global_offset != 0) {
    // a second offset has no place in the instruction: one more operand holds it
    in.extra = static_cast<uint32_t>(kernel_.operands.size());
    in.count = 2;
    kernel_.operands.push_back(Constant(8, static_cast<uint64_t>(global_offset)));
  }
  in.size = static_cast<uint8_t>(args[2].bits);
  if (args.size() > 3 && !op.Has("L2::cache_hint")) {
    if (args[3].kind == Arg::Kind::kRegister && TypeOf(args[3]) == Type::kPred)
      Unsupported("cp.async with an ignore-src predicate");
    in.c = SourceArg(args[3], 4);
  }
  Emit(in, CostOf(op));
}

void Lowerer::Matrix(const Statement& statement, const Opcode& op, Instruction& in) {
  if (op.base == "ldmatrix") {
    in.run = FindLdMatrix(op, in);
  } else if (op.base == "mma") {
    in.run = FindMma(op, in);
  } else if (op.base == "wmma") {
    in.run = FindWmma(op, in);
  }
  if (in.run == nullptr) Unsupported("PTX instruction '" + std::string(statement.opcode) + "'");
  std::vector<Operand> list;
  auto add = [&](const Arg& arg, bool definition) {
    const std::vector<Arg> single{arg};
    for (const Arg& element : arg.kind == Arg::Kind::kVector ? arg.elements : single) {
      list.push_back(definition ? TargetOf(element, 4) : SourceArg(element, 4));
    }
  };
  const std::vector<Arg>& args = statement.args;
  const bool store = op.base == "wmma" && op.Has("store");
  const bool load = op.base == "ldmatrix" || (op.base == "wmma" && op.Has("load"));
  if (load || store) {
    const int64_t detail = in.offset;
    MemoryAddress(args.at(store ? 0 : 1), op, in);
    if (in.offset != 0) {
      // the address offset has no place beside the operation's own data: add it first
      Instruction add_offset;
      add_offset.predicate = in.predicate;
      add_offset.flip = in.flip;
      const bool narrow = (in.flags & kFlagShared32) != 0;
      const uint32_t sum = NewRegister(narrow ? Type::kB32 : Type::kB64);
      const Opcode sum_op(narrow ? "add.u32" : "add.u64");
      add_offset.run = FindAlu(sum_op).handler;
      add_offset.a = in.a;
      add_offset.b = Constant(narrow ? 4 : 8, static_cast<uint64_t>(in.offset));
      Mention(sum, true);
      add_offset.d = static_cast<Operand>(sum);
      Emit(add_offset, {});
      Mention(sum, false);
      in.a = static_cast<Operand>(sum);
    }
    in.offset = detail;
    add(args.at(store ? 1 : 0), load);
    if (op.base == "wmma") in.b = args.size() > 2 ? SourceArg(args[2], 4) : kNoOperand;
  } else {
    for (size_t i = 1; i < args.size(); ++i) add(args[i], false);
    std::vector<Operand> sources = std::move(list);
    list.clear();
    add(args.at(0), true);
    list.insert(list.end(), sources.begin(), sources.end());
  }
  in.extra = static_cast<uint32_t>(kernel_.operands.size());
  kernel_.operands.insert(kernel_.operands.end(), list.begin(), list.end());
  tensor_flops_ = static_cast<float>(MatrixOperations(in));
  Cost cost = CostOf(op);
  if (load)
    cost.latency = static_cast<uint8_t>(static_cast<Space>(in.space) == Space::kShared ? LatencyClass::kShared
                                                                                       : LatencyClass::kGlobal);
  if (op.base == "wmma" && (load || store)) cost.pipe = Pipe::kMemory;
  if (store) cost.latency = static_cast<uint8_t>(LatencyClass::kNone);
  Emit(in, cost);
}

}  // namespace

Kernel LowerKernel(const PtxModule& module, const Function& entry,
                   const std::unordered_map<std::string_view, uint32_t>& globals) {
  return Lowerer(module, globals).Run(entry);
}

}  // namespace kgrpo::simt
