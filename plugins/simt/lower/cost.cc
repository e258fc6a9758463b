#include "simt/lower/cost.h"

#include <algorithm>

namespace kgrpo::simt {
namespace {

Cost Make(Pipe pipe, LatencyClass latency, float issue, float pipe_use = -1) {
  return {pipe, static_cast<uint8_t>(latency), issue, pipe_use < 0 ? issue : pipe_use};
}
Cost Alu(Pipe pipe, float issue, float use = -1) { return Make(pipe, LatencyClass::kAlu, issue, use); }
const Cost kFree = Make(Pipe::kInt, LatencyClass::kNone, 0);

bool IsHalf(Type type) {
  return type == Type::kF16 || type == Type::kF16x2 || type == Type::kBf16 || type == Type::kBf16x2;
}

Cost Division(const Opcode& op) {
  switch (op.type()) {
    case Type::kF32:
      if (op.Has("approx")) return Make(Pipe::kSpecial, LatencyClass::kSpecial, op.Has("ftz") ? 2 : 5, 1);
      if (op.Has("full")) return Make(Pipe::kSpecial, LatencyClass::kSpecial, 6, 1);
      return Make(Pipe::kFp32, LatencyClass::kSpecial, 11, 8);
    case Type::kF64: return Make(Pipe::kFp64, LatencyClass::kFp64, 18, 10);
    case Type::kU64:
    case Type::kS64: return Alu(Pipe::kInt, 70);
    default: return Make(Pipe::kInt, LatencyClass::kSpecial, 17);
  }
}

Cost Special(const Opcode& op) {
  if (op.type() == Type::kF64) {
    if (op.Has("approx")) return Make(Pipe::kSpecial, LatencyClass::kSpecial, 2, 1);
    return Make(Pipe::kFp64, LatencyClass::kFp64, op.base == "sqrt" ? 18 : 12, 8);
  }
  if (op.Has("rn") || op.Has("rz") || op.Has("rm") || op.Has("rp")) {
    return Make(Pipe::kFp32, LatencyClass::kSpecial, op.base == "sqrt" ? 9 : 8, 5);
  }
  if (op.base == "tanh" || op.type() != Type::kF32) return Make(Pipe::kSpecial, LatencyClass::kSpecial, 1);
  if (op.base == "sin" || op.base == "cos") return Make(Pipe::kSpecial, LatencyClass::kSpecial, 2, 1);
  // Without .ftz subnormal arguments are scaled before and results after.
  return Make(Pipe::kSpecial, LatencyClass::kSpecial, op.Has("ftz") ? 1 : 4, 1);
}

Cost Conversion(const Opcode& op) {
  const Type to = op.types[0], from = op.types[1];
  auto integer = [](Type type) { return type <= Type::kS64 && type != Type::kPred; };
  if (integer(to) && integer(from)) {
    if (TypeBytes(to) <= 4 && TypeBytes(from) == 8) return kFree;
    if (TypeBytes(to) == 8 && TypeBytes(from) <= 4) return TypeIsSigned(from) ? Alu(Pipe::kInt, 1) : kFree;
    return TypeBytes(to) >= 4 && TypeBytes(from) >= 4 ? kFree : Alu(Pipe::kInt, 1);
  }
  if (to == Type::kF32 && IsHalf(from)) return Alu(Pipe::kFp32, 1);
  if (IsHalf(to) && from == Type::kF32)
    return Alu(Pipe::kHalf, to == Type::kF16x2 || to == Type::kBf16x2 ? 1.0f : 0.7f);
  if (to == Type::kF32 && from == Type::kF32 && op.Has("sat")) return Alu(Pipe::kFp32, 1);
  if (to == Type::kF64 || from == Type::kF64) return Make(Pipe::kSpecial, LatencyClass::kFp64, 1);
  return Make(Pipe::kSpecial, LatencyClass::kSpecial, 1, 0.25f);  // 64 lanes, where the other special functions have 16
}

}  // namespace

Cost CostOf(const Opcode& op) {
  const Type type = op.type();
  const bool wide = TypeBytes(type) == 8 && type != Type::kF64;
  const std::string_view base = op.base;
  if (base == "ld" || base == "ldu") {
    if (op.Has("param")) return kFree;
    if (op.Has("const")) return Make(Pipe::kMemory, LatencyClass::kConstant, 1, 0.5f);
    if (op.Has("shared") || op.Has("shared::cta")) return Make(Pipe::kMemory, LatencyClass::kShared, 1);
    if (op.Has("local")) return Make(Pipe::kMemory, LatencyClass::kLocal, 1);
    return Make(Pipe::kMemory, LatencyClass::kGlobal, 1);
  }
  if (base == "tex" || base == "suld") return Make(Pipe::kMemory, LatencyClass::kGlobal, 1);
  if (base == "sust") return Make(Pipe::kMemory, LatencyClass::kNone, 1);
  if (base == "st") return op.Has("param") ? kFree : Make(Pipe::kMemory, LatencyClass::kNone, 1);
  if (base == "atom" || base == "red")
    return Make(Pipe::kMemory, base == "red" ? LatencyClass::kNone : LatencyClass::kAtomic, 1);
  if (base == "cp") return Make(Pipe::kMemory, LatencyClass::kNone, 1);
  if (base == "shfl") return Make(Pipe::kMemory, LatencyClass::kShuffle, 1);
  if (base == "ldmatrix") return Make(Pipe::kMemory, LatencyClass::kShared, 1);
  if (base == "mma" || base == "wmma") return Make(Pipe::kTensor, LatencyClass::kTensor, 1);
  if (base == "bar" || base == "barrier") return Make(Pipe::kControl, LatencyClass::kBarrier, op.Has("warp") ? 1 : 2);
  if (base == "bra" || base == "brx" || base == "ret" || base == "exit") return Alu(Pipe::kControl, 1);
  if (base == "call") return kFree;
  if (base == "vote" || base == "match" || base == "redux" || base == "activemask")
    return Make(Pipe::kControl, LatencyClass::kShuffle, 1);
  if (base == "membar" || base == "fence") return Make(Pipe::kControl, LatencyClass::kAtomic, 1);
  if (base == "mov" || base == "cvta") return kFree;
  if (base == "div" || base == "rem") return Division(op);
  if (base == "rcp" || base == "sqrt" || base == "rsqrt" || base == "ex2" || base == "lg2" || base == "sin" ||
      base == "cos" || base == "tanh")
    return Special(op);
  if (base == "cvt") return Conversion(op);
  if (base == "popc" || base == "clz" || base == "brev" || base == "bfind")
    return Make(Pipe::kSpecial, LatencyClass::kSpecial, wide ? 3 : 1);
  if (type == Type::kF64)
    return Make(base == "selp" || base == "neg" || base == "abs" ? Pipe::kInt : Pipe::kFp64, LatencyClass::kFp64, 1);
  if (type == Type::kF32) {
    if (base == "neg" || base == "abs") return kFree;  // operand modifiers
    return Alu(base == "setp" || base == "selp" || base == "min" || base == "max" || base == "copysign" ? Pipe::kInt
                                                                                                        : Pipe::kFp32,
               1);
  }
  if (IsHalf(type)) {
    if (base == "neg" || base == "abs") return kFree;
    return Alu(Pipe::kHalf, 1);
  }
  if (type == Type::kPred) return Alu(Pipe::kInt, 0.5f);
  if (base == "mul" || base == "mad") {
    if (op.Has("wide")) return Alu(Pipe::kFp32, 1, 1);  // IMAD runs beside the float units
    return wide ? Alu(Pipe::kFp32, 4) : Alu(Pipe::kFp32, 1);
  }
  return Alu(Pipe::kInt, wide ? 2.0f : 1.0f);
}

void AddPipes(const Cost& cost, double times, std::array<double, static_cast<size_t>(Pipe::kCount)>& pipes) {
  auto add = [&](Pipe pipe, double amount) { pipes[static_cast<size_t>(pipe)] += times * amount; };
  const double use = static_cast<double>(cost.pipe_use);
  // A use below 1 belongs to a fast instruction; it is not a fraction of one.
  const double rest = static_cast<double>(cost.issue) - std::max(1.0, use);
  add(cost.pipe, use);
  if (rest <= 0 || static_cast<LatencyClass>(cost.latency) != LatencyClass::kSpecial) return;
  if (cost.pipe == Pipe::kSpecial && rest < 2) {
    add(Pipe::kFp32, rest);  // a product: with a sine's argument, or with a divisor's reciprocal
  } else if (cost.pipe == Pipe::kSpecial) {
    // One comparison to two products: the test for a subnormal argument, its scaling, and that of the result.
    add(Pipe::kInt, rest / 3);
    add(Pipe::kFp32, rest * 2 / 3);
  } else if (cost.pipe == Pipe::kFp32) {
    add(Pipe::kSpecial, 1);  // the approximation that a division or a root begins with
    add(Pipe::kInt, rest - 1);
  }
}

}  // namespace kgrpo::simt
