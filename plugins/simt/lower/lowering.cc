// The walk over a kernel's statements: functions are inlined at their calls, branches get their targets, and each other
// instruction goes to the member of Lowerer for its kind.
#include "simt/lower/lowering.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "simt/lower/cost.h"
#include "simt/lower/lowerer.h"
#include "simt/state/handlers.h"

namespace kgrpo::simt {
namespace {

constexpr int kMaxInlineDepth = 64;
constexpr size_t kMostLowered = 4'000'000;  // statements, labels and registers of a kernel with all that it inlines

}  // namespace

Lowerer::Lowerer(const PtxModule& module, const std::unordered_map<std::string_view, uint32_t>& globals)
    : module_(module), globals_(globals) {
  for (const Function& function : module.functions) {
    if (function.has_body) functions_[function.name] = &function;
  }
}

Kernel Lowerer::Run(const Function& entry) {
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
  const std::vector<const Function*> subroutines = FindSubroutines(entry);
  if (!subroutines.empty()) LowerSubroutines(subroutines);
  Body(instance, 0);
  if (!subroutines.empty()) FinishStack();
  FinishShared();
  FinishBlocks();
  FinishRegisters();
  FinishUniform();
  kernel_.local_bytes = (kernel_.local_bytes + 15) / 16 * 16;
  for (size_t i = 0; i < kernel_.code.size(); ++i) kernel_.code[i].index = static_cast<uint32_t>(i);
  return std::move(kernel_);
}

void Lowerer::Unsupported(const std::string& what) {
  // The instruction is added if the message names neither it nor the missing function or variable.
  const bool names = opcode_.starts_with("call") || what.ends_with(',') || what.find(opcode_) != std::string::npos;
  Refuse(module_, where_, ptx_line_, names ? what : what + " ('" + std::string(opcode_) + "')");
}

void Lowerer::Malformed(const std::string& what) {
  throw Error(KGRPO_ERROR_INVALID, "PTX line " + std::to_string(ptx_line_) + ": " + what);
}

void Lowerer::UnsupportedInstruction(const Statement& statement) {
  Unsupported("PTX instruction '" + std::string(statement.opcode) + "'");
}

// ---- functions ----

void Lowerer::Body(Instance& instance, int depth) {
  Instance* outer = std::exchange(instance_, &instance);
  const Function& function = *instance.function;
  if (!function.refused.empty()) throw Error(KGRPO_ERROR_UNSUPPORTED, function.refused);
  lowered_ += function.body.size() + function.labels.size() + function.registers.size() + 1;
  if (lowered_ > kMostLowered) {
    Unsupported("a kernel of more than " + std::to_string(kMostLowered / 1'000'000) +
                " million statements, labels and registers, those of its functions at each call included");
  }
  instance.register_base = static_cast<uint32_t>(types_.size());
  for (const Type type : function.registers) NewRegister(type);
  instance.label_pcs.assign(function.labels.size(), 0);
  for (uint32_t i = 0; i < function.labels.size(); ++i) instance.labels[function.labels[i]] = i;
  for (const Statement& statement : function.body) {
    if (statement.label >= 0) instance.label_pcs[static_cast<size_t>(statement.label)] = Pc();
    for (const int more : statement.more_labels) instance.label_pcs[static_cast<size_t>(more)] = Pc();
    if (statement.opcode.empty()) continue;
    try {
      Lower(statement, depth);
    } catch (const std::out_of_range&) {  // thrown by an index into operands or arguments
      Malformed("an operand is missing");
    }
  }
  predicated_ = false;
  FinishLabels(depth);
  instance_ = outer;
}

void Lowerer::FinishLabels(int depth) {
  const Instance& instance = *instance_;
  const uint32_t end = Pc();
  if (depth == 0) {  // running off the end is an exit
    Instruction in;
    in.predicate = all_lanes_;
    in.run = &Exit;
    Emit(in, {});
  }
  for (const auto& [pc, label] : instance.branches) SetTarget(pc, instance.label_pcs[label]);
  for (const auto& [at, label] : instance.tables) kernel_.branch_targets[at] = instance.label_pcs[label];
  for (const uint32_t pc : instance.returns) SetTarget(pc, end);
}

uint32_t Lowerer::LabelOf(std::string_view name) {
  const auto it = instance_->labels.find(name);
  if (it == instance_->labels.end()) Malformed("no label '" + std::string(name) + "'");
  return it->second;
}

void Lowerer::Call(const Statement& statement, Instruction& in, int depth) {
  if (statement.callee_register >= 0) return CallFunction(statement, in, -1);
  if (const auto known = subroutine_index_.find(statement.callee); known != subroutine_index_.end())
    return CallFunction(statement, in, known->second);
  if (statement.callee == "vprintf") {
    in.run = &PrintFormatted;
    in.a = FrameAddress(statement.arguments.at(0));
    in.b = FrameAddress(statement.arguments.at(1));
    in.c = statement.results.empty() ? kNoOperand : FrameAddress(statement.results[0]);
    Emit(in, {.pipe = Pipe::kControl, .issue = 20, .pipe_use = 20, .priced = false});
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
  Inline(statement, *it->second, in, depth);
}

void Lowerer::Inline(const Statement& statement, const Function& callee, Instruction& in, int depth) {
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
    skip = Pc();
    Emit(in, {Pipe::kControl, 0, 1, 1});
  }
  const bool predicated = predicated_;
  const SourceLine where = where_;
  call_stack_.push_back(statement.callee);
  Body(instance, depth + 1);
  call_stack_.pop_back();
  where_ = where;
  if (predicated) SetTarget(skip, Pc());
}

// ---- statements ----

void Lowerer::Lower(const Statement& statement, int depth) {
  where_ = statement.where;
  ptx_line_ = statement.ptx_line;
  opcode_ = statement.opcode;
  if (statement.no_unroll) kernel_.no_unroll.push_back(Pc());
  Instruction in;
  predicated_ = statement.predicate >= 0;
  in.predicate = all_lanes_;
  if (predicated_) {
    in.predicate = Register(statement.predicate, false);
    in.flip = statement.predicate_negated ? 0xFFFFFFFFu : 0u;
  }
  const Opcode op(statement.opcode);
  unset_rule_ = UnsetRuleOf(op);
  if (op.base == "bra") {
    if (statement.args.size() != 1 || statement.args[0].kind != Arg::Kind::kSymbol)
      Malformed("a branch without a label");
    instance_->branches.emplace_back(Pc(), LabelOf(statement.args[0].symbol));
    in.run = &Branch;
    Emit(in, CostOf(op));
  } else if (op.base == "brx") {
    IndexedBranch(statement, op, in);
  } else if (op.base == "ret" && depth > 0) {
    instance_->returns.push_back(Pc());
    in.run = &Branch;
    Emit(in, CostOf(op));
  } else if (op.base == "call") {
    Call(statement, in, depth);
  } else {
    Plain(statement, op, in);
  }
}

void Lowerer::IndexedBranch(const Statement& statement, const Opcode& op, Instruction& in) {
  in.run = &BranchIndexed;
  in.a = SourceArg(statement.args.at(0), 4);
  const std::string_view name = statement.args.at(1).symbol;
  for (const BranchTable& table : instance_->function->tables) {
    if (table.name != name) continue;
    in.extra = static_cast<uint32_t>(kernel_.branch_targets.size());
    in.offset = static_cast<int64_t>(table.targets.size());
    for (const std::string_view target : table.targets) {
      instance_->tables.emplace_back(static_cast<uint32_t>(kernel_.branch_targets.size()), LabelOf(target));
      kernel_.branch_targets.push_back(0);
    }
  }
  Emit(in, CostOf(op));
}

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
  if (base == "mbarrier" || (base == "cp" && op.Has("mbarrier") && op.Has("arrive") && !op.Has("bulk")))
    return PhaseBarrierOperation(statement, op, in);
  if (base == "cp" && op.Has("bulk")) return BulkCopyOperation(statement, op, in);
  if (base == "tex" || base == "suld" || base == "sust") return ImageOperation(statement, op, in);
  if (base == "cp") return AsyncCopy(statement, op, in);
  if (base == "ldmatrix" || base == "stmatrix" || base == "movmatrix" || base == "mma" || base == "wmma")
    return Matrix(statement, op, in);
  if (base == "ret" || base == "exit") {
    in.run = &Exit;
  } else if (base == "trap" || base == "brkpt") {
    in.run = &TrapOperation;
  } else if (base == "membar" || base == "fence") {
    // Here all memory is coherent whoever accesses it; checks know of the proxy of bulk copies, other ones are refused.
    if (op.Has("tensormap::generic") || op.Has("alias")) Unsupported("'" + std::string(statement.opcode) + "'");
    in.run = op.Has("proxy") ? &FenceAsyncProxy : &Fence;
    if (op.Has("cta")) in.flags |= kFlagBlockScope;
  } else if (base == "nanosleep") {
    in.run = &NanoSleep;
    in.a = SourceArg(args.at(0), 4);
  } else if (base == "prefetch" || base == "prefetchu" || base == "discard" || base == "applypriority" ||
             base == "pmevent") {
    in.run = &Prefetch;
  } else if (base == "griddepcontrol") {
    in.run = op.Has("wait") ? &WaitForEarlierLaunches : &LetNextLaunchBegin;
  } else {
    return Arithmetic(statement, op, in);
  }
  if (!args.empty() && in.run == &Prefetch) in.a = kNoOperand;
  Emit(in, CostOf(op));
}

void Lowerer::Emit(const Instruction& in, const Cost& cost) {
  kernel_.code.push_back(in);
  kernel_.costs.push_back(cost);
  kernel_.lines.push_back(where_);
  kernel_.mention_start.push_back(static_cast<uint32_t>(kernel_.mentions.size()));
  kernel_.is_wide_product.push_back(wide_product_ ? 1 : 0);
  kernel_.float_atomic.push_back(float_atomic_ ? 1 : 0);
  float_atomic_ = false;
  kernel_.tensor_flops.push_back(tensor_flops_);
  unset_rules_.push_back(unset_rule_);
  NoteNature(in);
  wide_product_ = false;
  tensor_flops_ = 0;
}

Operand Lowerer::EmitToNewRegister(Instruction& in, Type type, const Cost& cost) {
  const uint32_t result = NewRegister(type);
  Mention(result, true);
  in.d = static_cast<Operand>(result);
  Emit(in, cost);
  Mention(result, false);
  return in.d;
}

Kernel LowerKernel(const PtxModule& module, const Function& entry,
                   const std::unordered_map<std::string_view, uint32_t>& globals) {
  return Lowerer(module, globals).Run(entry);
}

}  // namespace kgrpo::simt
