// Functions that stay functions: recursive ones, and those that a kernel may call through a pointer. All others are
// inlined (lowering.cc). A kernel that has any begins with a branch over them. Lower pcs run first, so lanes within a
// function run before those that wait for its return.
#include <algorithm>
#include <functional>
#include <set>

#include "simt/lower/cost.h"
#include "simt/lower/lowerer.h"
#include "simt/lower/lowering.h"
#include "simt/state/handlers.h"

namespace kgrpo::simt {
namespace {

// Stack per thread. A GPU's default is 1,024 (cudaLimitStackSize, which host code may raise), but for frames of machine
// code, which hold saved registers: 24 bytes for a recursive fib(n) on sm_90 that takes 16 here. So the depth at which
// a GPU overflows is not known here.
constexpr uint32_t kStackBytes = 8192;
constexpr size_t kDeepestCalls = 1000;  // of functions that call functions, as they stand in the source
constexpr uint64_t kFunctionWindow = 0x0DC0'0000'0000'0000;

}  // namespace

uint64_t FunctionAddress(const PtxModule& module, std::string_view name) {
  for (size_t i = 0; i < module.functions.size(); ++i) {
    const Function& function = module.functions[i];
    if (function.name == name && function.has_body && !function.is_entry) return kFunctionWindow + 16 * (i + 1);
  }
  return 0;
}

// The functions that the kernel reaches and that cannot be inlined.
std::vector<const Function*> Lowerer::FindSubroutines(const Function& entry) const {
  std::set<std::string_view> taken;  // whose address the module uses
  for (const Variable& variable : module_.variables) {
    for (const Variable::Reference& reference : variable.references) taken.insert(reference.symbol);
  }
  for (const Function& function : module_.functions) {
    for (const Statement& statement : function.body) {
      for (const Arg& arg : statement.args) {
        if (arg.kind == Arg::Kind::kSymbol) taken.insert(arg.symbol);
      }
    }
  }
  std::set<std::string_view> seen, on_path, found;
  bool indirect = false;
  std::function<void(const Function&)> visit = [&](const Function& function) {
    seen.insert(function.name);
    on_path.insert(function.name);
    if (on_path.size() > kDeepestCalls)
      Refuse(module_, {}, 0, "a chain of more than " + std::to_string(kDeepestCalls) + " functions");
    for (const Statement& statement : function.body) {
      indirect |= statement.callee_register >= 0;
      const auto it = functions_.find(statement.callee);
      if (statement.callee.empty() || statement.callee_register >= 0 || it == functions_.end()) continue;
      if (on_path.contains(statement.callee)) found.insert(statement.callee);
      if (!seen.contains(statement.callee)) visit(*it->second);
    }
    on_path.erase(function.name);
  };
  visit(entry);
  if (indirect) {
    for (const std::string_view name : taken) {
      const auto it = functions_.find(name);
      if (it == functions_.end() || it->second->is_entry) continue;
      found.insert(name);
      if (!seen.contains(name)) visit(*it->second);
    }
  }
  std::vector<const Function*> functions;
  functions.reserve(found.size());
  for (const std::string_view name : found) functions.push_back(functions_.at(name));
  return functions;
}

// Their code, before the kernel's own.
void Lowerer::LowerSubroutines(const std::vector<const Function*>& functions) {
  stack_register_ = NewRegister(Type::kB64);
  frame_register_ = NewRegister(Type::kB64);
  stack_start_ = NewConstant(8, 0);
  Instruction start;
  start.predicate = all_lanes_;
  start.run = FindAlu(Opcode("mov.b64")).handler;
  start.a = ~static_cast<Operand>(stack_start_);
  start.d = static_cast<Operand>(stack_register_);
  Mention(stack_register_, true);
  Emit(start, {});
  Instruction skip;
  skip.predicate = all_lanes_;
  skip.run = &Branch;
  const uint32_t skip_pc = Pc();
  Emit(skip, {});
  for (size_t i = 0; i < functions.size(); ++i) subroutine_index_[functions[i]->name] = static_cast<int>(i);
  kernel_.subroutines.resize(functions.size());
  in_subroutine_ = true;
  for (size_t i = 0; i < functions.size(); ++i) {
    const Function& function = *functions[i];
    Subroutine& subroutine = kernel_.subroutines[i];
    subroutine.name = SourceName(function.name);
    subroutine.address = FunctionAddress(module_, function.name);
    subroutine.pc = Pc();
    frame_end_ = 0;
    Instance instance;
    instance.function = &function;
    auto place = [&](const std::vector<Variable>& variables, std::vector<Subroutine::Place>& into) {
      for (const Variable& variable : variables) {
        const Place at = Materialise(variable, instance.variables);
        into.push_back({at.offset, static_cast<uint32_t>(variable.bytes)});
      }
    };
    place(function.results, subroutine.results);
    place(function.parameters, subroutine.parameters);
    const auto first = static_cast<uint32_t>(types_.size());
    Body(instance, 1);
    Instruction back;
    back.predicate = all_lanes_;
    back.run = &ReturnFromSubroutine;
    Emit(back, {Pipe::kControl, 0, 2, 2});
    subroutine_registers_.emplace_back(first, static_cast<uint32_t>(types_.size()));
    subroutine.frame_bytes = (frame_end_ + 15) / 16 * 16;
  }
  in_subroutine_ = false;
  SetTarget(skip_pc, Pc());
}

// Call it when every variable of the kernel has its place: the stack lies behind them.
void Lowerer::FinishStack() {
  const uint32_t start = (kernel_.local_bytes + 15) / 16 * 16;
  for (uint32_t l = 0; l < kLanes; ++l) kernel_.constants[stack_start_ / 4 + 2 * l] = start;
  kernel_.local_bytes = start + kStackBytes;
}

// Call it when registers have their slots.
void Lowerer::FinishSubroutines(const std::vector<Operand>& offsets) {
  kernel_.stack_register = offsets[stack_register_];
  kernel_.frame_register = offsets[frame_register_];
  for (size_t i = 0; i < subroutine_registers_.size(); ++i) {
    for (uint32_t reg = subroutine_registers_[i].first; reg < subroutine_registers_[i].second; ++reg) {
      const uint32_t bytes = types_[reg] == Type::kPred ? 1 : TypeBytes(types_[reg]) == 8 ? 8 : 4;
      kernel_.subroutines[i].registers.push_back({offsets[reg], static_cast<uint8_t>(bytes)});
    }
  }
}

void Lowerer::CallFunction(const Statement& statement, Instruction& in, int index) {
  in.run = &CallSubroutine;
  in.offset = index;
  in.count = static_cast<uint8_t>(statement.arguments.size());
  in.size = static_cast<uint8_t>(statement.results.size());
  if (statement.arguments.size() > 255) Unsupported("a call with more than 255 arguments");
  std::vector<Operand> addresses;
  for (const std::string_view name : statement.arguments) addresses.push_back(FrameAddress(name));
  for (const std::string_view name : statement.results) addresses.push_back(FrameAddress(name));
  if (index < 0) {
    const Type type = instance_->function->registers[static_cast<size_t>(statement.callee_register)];
    if (TypeBytes(type) != 8) Malformed("a call through a register that holds no pointer");
    in.a = Register(statement.callee_register, false);
  }
  SetList(in, addresses);
  Emit(in, {Pipe::kControl, 0, 4, 4});
}

// frame register + offset, in a register of its own.
Operand Lowerer::FrameOffset(int64_t offset, uint32_t width) {
  Instruction add;
  add.predicate = all_lanes_;
  add.run = FindAlu(Opcode("add.u64")).handler;
  add.a = static_cast<Operand>(frame_register_);
  add.b = Constant(8, static_cast<uint64_t>(offset));
  Mention(frame_register_, false);
  const Operand sum = EmitToNewRegister(add, Type::kB64, {});
  if (width == 8) return sum;
  Instruction narrow;
  narrow.predicate = all_lanes_;
  narrow.run = FindAlu(Opcode("cvt.u32.u64")).handler;
  narrow.a = sum;
  return EmitToNewRegister(narrow, Type::kB32, {});
}

}  // namespace kgrpo::simt
