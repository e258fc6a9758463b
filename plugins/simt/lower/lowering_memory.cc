// Loads, stores, atomics, copies, and conversions of addresses.
#include "simt/lower/cost.h"
#include "simt/lower/lowerer.h"
#include "simt/state/handlers.h"
#include "simt/state/memory.h"

namespace kgrpo::simt {
namespace {

Space SpaceOf(const Opcode& op) {
  if (op.Has("global")) return Space::kGlobal;
  if (op.Has("shared") || op.Has("shared::cta")) return Space::kShared;
  if (op.Has("local")) return Space::kLocal;
  if (op.Has("const")) return Space::kConst;
  if (op.Has("param") || op.Has("param::entry") || op.Has("param::func")) return Space::kParam;
  return Space::kGeneric;
}

}  // namespace

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
  SetList(in, list);
}

void Lowerer::LoadStore(const Statement& statement, const Opcode& op, Instruction& in) {
  const bool load = op.base != "st";
  const std::vector<Arg>& args = statement.args;
  if (args.size() < 2) Malformed("'" + std::string(statement.opcode) + "' without its operands");
  const size_t hints = op.Has("L2::cache_hint") ? 1 : 0;  // the last operand is a cache policy
  if (args.size() > 2 + hints || op.Has("async") || op.Has("shared::cluster")) UnsupportedInstruction(statement);
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
  if (op.Has("volatile")) in.flags |= kFlagPlainVolatile;
  if (op.Has("cta")) in.flags |= kFlagBlockScope;
  if (op.Has("acquire")) in.flags |= kFlagAcquire;
  if (op.Has("release")) in.flags |= kFlagRelease;
  if (op.Has("cg")) in.flags |= kFlagBypassL1;
  if (op.Has("nc") || op.Has("const")) in.flags |= kFlagReadOnly;
  in.run = load ? FindLoad(op.type(), slot_bytes) : FindStore(op.type(), slot_bytes);
  if (in.run == nullptr) UnsupportedInstruction(statement);
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
  from_parameters_ = true;
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
  from_parameters_ = false;
}

void Lowerer::AtomicAccess(const Statement& statement, const Opcode& op, Instruction& in) {
  if (op.Has("shared::cluster") || op.Has("async")) UnsupportedInstruction(statement);
  in.run = FindAtomic(op);
  if (in.run == nullptr) UnsupportedInstruction(statement);
  const bool reduction = op.base == "red";
  float_atomic_ = op.type() >= Type::kF16 && op.type() <= Type::kF64;
  const std::vector<Arg>& args = statement.args;
  const size_t at = reduction ? 0 : 1;
  if (args.size() < at + 2) Malformed("'" + std::string(statement.opcode) + "' without its operands");
  MemoryAddress(args[at], op, in);
  kernel_.global_atomics |= static_cast<Space>(in.space) != Space::kShared;
  atomic_address_[static_cast<uint32_t>(kernel_.code.size())] = in.a >= 0 ? in.a : -1;
  const Type type = op.type();
  const uint32_t bytes = TypeBytes(type);
  in.size = static_cast<uint8_t>(bytes);
  if (args[at + 1].kind == Arg::Kind::kVector) return VectorAtomic(statement, op, in);
  in.b = SourceArg(args[at + 1], bytes, type);
  if (args.size() > at + 2 + (op.Has("L2::cache_hint") ? 1 : 0)) in.c = SourceArg(args[at + 2], bytes, type);
  if (reduction || args[0].kind == Arg::Kind::kSink) {
    in.flags |= kFlagNoReturn;
  } else {
    in.d = TargetOf(args[0], bytes);
  }
  if (op.Has("exch")) in.flags |= kFlagExchange;
  if (op.Has("cta")) in.flags |= kFlagBlockScope;
  if (op.Has("acquire") || op.Has("acq_rel")) in.flags |= kFlagAcquire;
  if (op.Has("release") || op.Has("acq_rel")) in.flags |= kFlagRelease;
  Emit(in, CostOf(op));
}

// Each element of a vector is an atomic operation of its own.
void Lowerer::VectorAtomic(const Statement& statement, const Opcode& op, Instruction& in) {
  const bool reduction = op.base == "red";
  const size_t at = reduction ? 0 : 1;
  const std::vector<Arg>& sources = statement.args[at + 1].elements;
  const std::vector<Arg>& targets = statement.args[0].elements;
  const bool wanted = !reduction && statement.args[0].kind == Arg::Kind::kVector;
  if (wanted && targets.size() != sources.size()) Malformed("a vector atomic whose vectors differ in length");
  const int64_t address = atomic_address_[Pc()];
  const bool is_float = float_atomic_;
  for (size_t i = 0; i < sources.size(); ++i) {
    Instruction element = in;
    element.offset += static_cast<int64_t>(i) * in.size;
    element.b = SourceArg(sources[i], in.size, op.type());
    if (wanted && targets[i].kind != Arg::Kind::kSink) {
      element.d = TargetOf(targets[i], in.size);
    } else {
      element.flags |= kFlagNoReturn;
    }
    // Each element's instruction reads the address.
    if (in.a >= 0 && in.a != kNoOperand) Mention(static_cast<uint32_t>(in.a), false);
    atomic_address_[Pc()] = address;
    float_atomic_ = is_float;
    Emit(element, CostOf(op));
  }
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

// A register that holds 0 where the predicate is true, else `size`.
Operand Lowerer::SizeUnless(const Arg& predicate, uint32_t size) {
  const Opcode select("selp.b32");
  Instruction in;
  in.predicate = all_lanes_;
  in.run = FindAlu(select).handler;
  in.a = Constant(4, 0);
  in.b = Constant(4, size);
  in.c = PredicateArg(predicate, in);
  return EmitToNewRegister(in, Type::kB32, CostOf(select));
}

void Lowerer::AsyncCopy(const Statement& statement, const Opcode& op, Instruction& in) {
  const std::vector<Arg>& args = statement.args;
  if (!op.Has("async")) UnsupportedInstruction(statement);
  if (op.Has("commit_group")) {
    in.run = &CommitCopies;
    in.space = static_cast<uint8_t>(Space::kShared);  // ordered as the copies are
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
    in.count = 2;
    SetList(in, {Constant(8, static_cast<uint64_t>(global_offset))});
  }
  in.size = static_cast<uint8_t>(args[2].bits);
  if (args.size() > 3 + (op.Has("L2::cache_hint") ? 1 : 0)) {
    if (args[3].kind == Arg::Kind::kRegister && TypeOf(args[3]) == Type::kPred) {
      in.c = SizeUnless(args[3], in.size);  // if the source is ignored, no bytes are read
    } else {
      in.c = SourceArg(args[3], 4);
    }
  }
  Emit(in, CostOf(op));
}

}  // namespace kgrpo::simt
