// Arithmetic, logic, comparisons, conversions and moves: the operands of each form.
#include "simt/lower/cost.h"
#include "simt/lower/lowerer.h"
#include "simt/state/handlers.h"

namespace kgrpo::simt {
namespace {

bool IsPair(Type type) { return type == Type::kF16x2 || type == Type::kBf16x2; }

// The value that `set` writes for a true comparison of operands of type `from`, as the handler takes it.
uint64_t TrueOf(Type type, Type from) {
  uint64_t one = type == Type::kF32 ? 0x3F800000u : 0xFFFFFFFFu;
  if (type == Type::kF16 || type == Type::kF16x2) one = 0x3C00u;
  if (type == Type::kBf16 || type == Type::kBf16x2) one = 0x3F80u;
  if (IsPair(from)) {  // the lower half's, then the upper half's
    return type == Type::kU32 || type == Type::kS32 ? 0xFFFFu | (uint64_t{0xFFFF0000u} << 32) : one | (one << 48);
  }
  return one;
}

int64_t PermuteMode(const Opcode& op) {
  return op.Has("f4e")    ? 1
         : op.Has("b4e")  ? 2
         : op.Has("rc8")  ? 3
         : op.Has("ecl")  ? 4
         : op.Has("ecr")  ? 5
         : op.Has("rc16") ? 6
                          : 0;
}

bool IsClock(const Arg& arg) {
  return arg.kind == Arg::Kind::kSpecial &&
         (arg.symbol == "%clock" || arg.symbol == "%clock_hi" || arg.symbol == "%clock64" ||
          arg.symbol == "%globaltimer" || arg.symbol == "%globaltimer_lo" || arg.symbol == "%globaltimer_hi");
}

}  // namespace

void Lowerer::Arithmetic(const Statement& statement, const Opcode& op, Instruction& in) {
  const AluChoice choice = FindAlu(op);
  if (choice.handler == nullptr) return LaneOperation(statement, op, in);
  in.run = choice.handler;
  if (choice.round >= 0) {
    in.inner = in.run;
    in.run = &RunRounded;
    in.offset = choice.round;
  }
  if (op.base == "setp") {
    SetPredicateOperands(statement, op, in);
  } else if (op.base == "set") {
    SetOperands(statement, op, in);
  } else if (op.base == "cvt") {
    ConvertOperands(statement, op, in);
  } else if (!ParticularOperands(statement, op, in)) {
    GeneralOperands(statement, op, in);
  }
  Emit(in, CostOf(op));
}

void Lowerer::NeedOperands(const Statement& statement, size_t count) {
  if (statement.args.size() != count)
    Malformed("'" + std::string(statement.opcode) + "' with " + std::to_string(statement.args.size()) + " operands");
}

void Lowerer::SetPredicateOperands(const Statement& statement, const Opcode& op, Instruction& in) {
  const std::vector<Arg>& args = statement.args;
  const Type type = op.type();
  const uint32_t bytes = TypeBytes(type);
  if (args.size() < 3) NeedOperands(statement, 3);
  in.a = SourceArg(args[1], bytes, type);
  in.b = SourceArg(args[2], bytes, type);
  if (args.size() > 3) {
    in.c = PredicateArg(args[3], in);
    in.size = op.Has("and") ? 1 : op.Has("or") ? 2 : 3;
  }
  in.offset = IsPair(type) ? 1 : 0;
  in.d = args[0].kind == Arg::Kind::kSink ? kNoOperand : Target(args[0]);
  in.e = SecondTarget(args[0]);
  if (in.offset == 1 && in.d == kNoOperand)
    Unsupported("'" + std::string(statement.opcode) + "' without its first result");
}

void Lowerer::SetOperands(const Statement& statement, const Opcode& op, Instruction& in) {
  const std::vector<Arg>& args = statement.args;
  const Type from = op.types[1];
  NeedOperands(statement, 3);
  in.a = SourceArg(args[1], TypeBytes(from), from);
  in.b = SourceArg(args[2], TypeBytes(from), from);
  in.offset = static_cast<int64_t>(TrueOf(op.type(), from));
  in.d = TargetOf(args[0], 4);
}

// The lower 32 bits of a 64-bit register, in a register of their own.
Operand Lowerer::LowHalf(const Arg& arg) {
  const Opcode narrow("cvt.u32.u64");
  Instruction in;
  in.predicate = all_lanes_;
  in.run = FindAlu(narrow).handler;
  in.a = SourceArg(arg, 8);
  return EmitToNewRegister(in, Type::kB32, CostOf(narrow));
}

void Lowerer::ConvertOperands(const Statement& statement, const Opcode& op, Instruction& in) {
  const std::vector<Arg>& args = statement.args;
  const Type to = op.types[0], from = op.types[1];
  if (args.size() > 1 && args[1].kind == Arg::Kind::kRegister && TypeBytes(from) <= 4 && SlotBytes(args[1]) == 8) {
    in.a = LowHalf(args[1]);
  } else {
    in.a = SourceArg(args.at(1), TypeBytes(from), from);
  }
  if (args.size() > 2) in.b = SourceArg(args[2], TypeBytes(from), from);
  in.d = TargetOf(args[0], TypeBytes(to));
}

// Instructions whose sources are not all of the instruction's type. False: this is none of them.
bool Lowerer::ParticularOperands(const Statement& statement, const Opcode& op, Instruction& in) {
  const std::vector<Arg>& args = statement.args;
  const std::string_view base = op.base;
  const Type type = op.type();
  const uint32_t bytes = TypeBytes(type);
  if (base == "selp") {
    NeedOperands(statement, 4);
    in.a = SourceArg(args[1], bytes, type);
    in.b = SourceArg(args[2], bytes, type);
    in.c = PredicateArg(args[3], in);
    in.d = TargetOf(args[0], bytes);
  } else if (type == Type::kPred) {
    in.a = PredicateArg(args.at(1), in);
    if (args[1].negated) Unsupported("a negated source of '" + std::string(statement.opcode) + "'");
    if (args.size() > 2) in.b = PredicateArg(args[2], in);
    in.d = Target(args[0]);
  } else if (base == "testp") {
    NeedOperands(statement, 2);
    in.a = SourceArg(args[1], bytes, type);
    in.d = Target(args[0]);
  } else if (base == "bfi") {
    NeedOperands(statement, 5);
    in.a = SourceArg(args[1], bytes);
    in.b = SourceArg(args[2], bytes);
    in.c = SourceArg(args[3], 4);
    in.e = SourceArg(args[4], 4);
    in.d = TargetOf(args[0], bytes);
  } else if (base == "lop3" || base == "prmt") {
    NeedOperands(statement, base == "lop3" ? 5 : 4);
    in.a = SourceArg(args[1], 4);
    in.b = SourceArg(args[2], 4);
    in.c = SourceArg(args[3], 4);
    in.offset = base == "lop3" ? static_cast<int64_t>(args[4].bits) : PermuteMode(op);
    in.d = TargetOf(args[0], 4);
  } else if (base == "slct") {
    NeedOperands(statement, 4);
    in.a = SourceArg(args[1], bytes, type);
    in.b = SourceArg(args[2], bytes, type);
    in.c = SourceArg(args[3], 4, op.types[1]);
    in.d = TargetOf(args[0], bytes);
  } else {
    return false;
  }
  return true;
}

// A result, then up to three sources of the instruction's type, with a few exceptions of width.
void Lowerer::GeneralOperands(const Statement& statement, const Opcode& op, Instruction& in) {
  const std::vector<Arg>& args = statement.args;
  const std::string_view base = op.base;
  const Type type = op.type();
  const uint32_t bytes = TypeBytes(type);
  const bool wide = op.Has("wide");
  wide_product_ = wide;
  const uint32_t doubled = wide ? bytes * 2 : bytes;
  const bool counts = base == "popc" || base == "clz" || base == "bfind";
  if (args.size() < 2 || args.size() > 4) NeedOperands(statement, 3);
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

// ---- mov ----

void Lowerer::Move(const Statement& statement, const Opcode& op, Instruction& in) {
  const std::vector<Arg>& args = statement.args;
  if (args.size() != 2) Malformed("mov with " + std::to_string(args.size()) + " operands");
  if (args[0].kind == Arg::Kind::kVector || args[1].kind == Arg::Kind::kVector) return MoveVector(statement, op, in);
  const uint32_t bytes = TypeBytes(op.type());
  if (IsClock(args[1])) {
    // Waits of libcu++ ask the timer of the whole device how long to sleep between two looks.
    reads_clock_ |= args[1].symbol.find("globaltimer") == std::string::npos;
    in.run = bytes == 8 ? &ReadClock64 : &ReadClock32;
    in.offset = args[1].symbol.ends_with("_hi") ? 32 : 0;
    in.d = TargetOf(args[0], bytes);
    Emit(in, {Pipe::kControl, 0, 1, 1});
    return;
  }
  in.run = FindAlu(op).handler;
  if (in.run == nullptr) UnsupportedInstruction(statement);
  in.a = op.type() == Type::kPred ? PredicateArg(args[1], in) : SourceArg(args[1], bytes, op.type());
  in.d = op.type() == Type::kPred ? Target(args[0]) : TargetOf(args[0], bytes);
  Emit(in, CostOf(op));
}

// Packs or unpacks a vector: one instruction an element, through shifts.
void Lowerer::MoveVector(const Statement& statement, const Opcode& op, Instruction& in) {
  const std::vector<Arg>& args = statement.args;
  const uint32_t bytes = TypeBytes(op.type());
  const bool unpack = args[0].kind == Arg::Kind::kVector;
  const std::vector<Arg>& elements = unpack ? args[0].elements : args[1].elements;
  const auto count = static_cast<uint32_t>(elements.size());
  if (count == 0 || bytes % count != 0 || bytes > 8) Unsupported("'" + std::string(statement.opcode) + "' of a vector");
  const uint32_t element = bytes / count;
  in.size = static_cast<uint8_t>(element);
  in.count = static_cast<uint8_t>(count);
  in.run = unpack ? FindUnpack(bytes) : FindPack(bytes);
  std::vector<Operand> list;
  if (unpack) {
    in.a = SourceArg(args[1], bytes);
    for (const Arg& arg : elements) list.push_back(arg.kind == Arg::Kind::kSink ? kNoOperand : TargetOf(arg, element));
  } else {
    for (const Arg& arg : elements) list.push_back(SourceArg(arg, element));
    in.d = TargetOf(args[0], bytes);
  }
  SetList(in, list);
  const float issued = unpack ? 0.0f : 1.0f;
  Emit(in, element == 4 ? Cost{} : Cost{Pipe::kInt, static_cast<uint8_t>(LatencyClass::kAlu), issued, issued});
}

}  // namespace kgrpo::simt
