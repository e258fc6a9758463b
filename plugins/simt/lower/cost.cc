#include "simt/lower/cost.h"

#include <algorithm>

namespace kgrpo::simt {
namespace {

Cost Make(Pipe pipe, LatencyClass latency, float issue, float pipe_use = -1) {
  return {pipe, static_cast<uint8_t>(latency), issue, pipe_use < 0 ? issue : pipe_use};
}
Cost Alu(Pipe pipe, float issue, float use = -1) { return Make(pipe, LatencyClass::kAlu, issue, use); }
const Cost kFree = Make(Pipe::kInt, LatencyClass::kNone, 0);

constexpr const char *kPrices = "bench/results/h200_prices.csv: a chain, and four chains a warp",
                     *kRates = "CUDA C++ Programming Guide: throughput of arithmetic instructions, 9.0",
                     *kCode = "the machine code that ptxas 13 makes of it for sm_90",
                     *kMicro = "bench/calibrate: micro.csv, and the fit to kernels",
                     *kLikeLoad = "estimated: as an access to global memory";

// Every base of the interpreter's instructions. What is added later has no price until it has a row.
constexpr struct {
  const char* bases;  // between blanks
  const char* source;
} kSources[] = {
    {" add sub mul mad fma neg abs min max sad mul24 mad24 addc subc madc div rem rcp sqrt rsqrt ex2 lg2 sin cos tanh ",
     kPrices},
    {" and or xor not cnot shl shr shf lop3 prmt bfe bfi bfind popc clz brev fns bmsk szext dp4a dp2a ", kPrices},
    {" set setp selp slct copysign cvt match redux activemask elect movmatrix mma brx membar fence nanosleep ",
     kPrices},
    {" vote shfl bar barrier mbarrier ldmatrix stmatrix wmma ld ldu st atom red cp ", kMicro},
    {" testp mov cvta isspacep bra ret exit call trap brkpt createpolicy pmevent ", kCode},
    {" prefetch prefetchu discard applypriority griddepcontrol tex suld sust ", kLikeLoad},
    {" vadd vsub vabsdiff vmin vmax vshl vshr vmad vset vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 vset2 ", kRates},
    {" vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4 ", kRates},
};

// Products of matrices, relative to m16n8k16 of halves: cycles for each operation, and the latency
// (bench/results/h200_prices.csv, "mma"). The first row that fits.
constexpr struct {
  const char* type;  // of A
  uint32_t k;        // 0: any
  float use, waits;
} kProducts[] = {
    {"f64", 4, 8.66f, 1.40f},  {"f64", 8, 8.16f, 2.03f},  {"f64", 0, 7.90f, 3.31f}, {"tf32", 4, 2.94f, 0.72f},
    {"tf32", 0, 2, 1},         {"s8", 16, 0.72f, 0.72f},  {"s8", 0, 0.49f, 1},      {"u8", 16, 0.72f, 0.72f},
    {"u8", 0, 0.49f, 1},       {"s4", 0, 10.1f, 21.5f},   {"u4", 0, 10.1f, 21.5f},  {"b1", 0, 0.06f, 1},
    {"e4m3", 0, 0.49f, 0.77f}, {"e5m2", 0, 0.49f, 0.77f}, {"f16", 8, 1.46f, 0.72f}, {"bf16", 8, 1.46f, 0.72f},
    {"f16", 0, 1, 1},          {"bf16", 0, 1, 1},
};

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

// Cycles that a fence takes on its multiprocessor, behind stores of its warp, and until it is complete: 97, 468 and
// 1,200 (h200_prices.csv, "fence").
Cost FenceCost(const Opcode& op) {
  Cost cost = Make(Pipe::kSerial, LatencyClass::kAtomic, 1, 20);
  if (op.Has("cta")) {
    cost.pipe_use = 10;
    cost.waits = 0.3f;
  } else if (op.Has("sys")) {
    cost.pipe_use = 36;
    cost.waits = 3.6f;
  } else {
    cost.waits = 1.4f;
  }
  return cost;
}

Cost UncheckedCostOf(const Opcode& op) {
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
  if (base == "redux" || (base == "match" && op.Has("any"))) {  // of each different value: Counter::CountTimes
    Cost cost = Make(Pipe::kSpecial, LatencyClass::kShuffle, 1);
    cost.waits = base == "redux" ? 1.84f : 0.5f;
    return cost;
  }
  if (base == "vote" || base == "match" || base == "activemask") return Make(Pipe::kControl, LatencyClass::kShuffle, 1);
  if (base == "nanosleep") return Make(Pipe::kSerial, LatencyClass::kBarrier, 1, 6);
  if ((base == "membar" || base == "fence") && !op.Has("proxy")) return FenceCost(op);
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

}  // namespace

std::string_view PriceSource(std::string_view base) {
  const std::string word = " " + std::string(base) + " ";
  for (const auto& [bases, source] : kSources) {
    if (std::string_view(bases).find(word) != std::string_view::npos) return source;
  }
  return {};
}

Cost CostOf(const Opcode& op) {
  Cost cost = UncheckedCostOf(op);
  cost.priced = !PriceSource(op.base).empty();
  return cost;
}

void PriceProduct(const Opcode& op, uint32_t m, uint32_t k, double operations, Cost* cost) {
  constexpr double kProduct = 4096, kFewRows = 1.95;  // operations of m16n8k16; m8 takes as long as m16
  const auto has = [&](std::string_view name) {
    const Type type = TypeByName("." + std::string(name));
    return type == Type::kNone ? op.Has(name) : std::find(op.types.begin(), op.types.end(), type) != op.types.end();
  };
  for (const auto& [type, only_k, use, waits] : kProducts) {
    // wmma does not name halves.
    if ((only_k != 0 && only_k != k) || (!has(type) && !(op.base == "wmma" && type == std::string_view("f16"))))
      continue;
    const double rows = op.base == "mma" && m == 8 ? kFewRows : 1;
    cost->pipe_use = static_cast<float>(operations / kProduct * rows * static_cast<double>(use));
    cost->waits = waits;
    return;
  }
  cost->priced = false;
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
