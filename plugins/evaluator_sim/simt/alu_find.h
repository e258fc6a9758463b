// Chooses the handler of an arithmetic opcode. Included after alu_ops.h by alu_avx2.cc and alu_generic.cc.
#ifndef KGRPO_EVALUATOR_SIM_SIMT_ALU_FIND_H_
#define KGRPO_EVALUATOR_SIM_SIMT_ALU_FIND_H_

#include "evaluator_sim/simt/alu_ops.h"

namespace kgrpo::simt {
namespace {

// Applies a template to the integer type that `type` names: KGRPO_INTEGERS(Add) -> &Map<&Add<uint32_t>>::Run ...
#define KGRPO_CASES_16_32_64(F)       \
  case Type::kU16:                    \
  case Type::kB16:                    \
    return {&Map<&F<uint16_t>>::Run}; \
  case Type::kS16:                    \
    return {&Map<&F<int16_t>>::Run};  \
  case Type::kU32:                    \
  case Type::kB32:                    \
    return {&Map<&F<uint32_t>>::Run}; \
  case Type::kS32:                    \
    return {&Map<&F<int32_t>>::Run};  \
  case Type::kU64:                    \
  case Type::kB64:                    \
    return {&Map<&F<uint64_t>>::Run}; \
  case Type::kS64:                    \
    return {&Map<&F<int64_t>>::Run};
#define KGRPO_UNSIGNED(F)               \
  switch (op.type()) {                  \
    case Type::kB16:                    \
    case Type::kU16:                    \
      return {&Map<&F<uint16_t>>::Run}; \
    case Type::kB32:                    \
    case Type::kU32:                    \
      return {&Map<&F<uint32_t>>::Run}; \
    case Type::kB64:                    \
    case Type::kU64:                    \
      return {&Map<&F<uint64_t>>::Run}; \
    default:                            \
      return {};                        \
  }

int DirectedRound(const Opcode& op) {
  return op.Has("rz") ? FE_TOWARDZERO : op.Has("rm") ? FE_DOWNWARD : op.Has("rp") ? FE_UPWARD : -1;
}

#define KGRPO_FLOAT_VARIANTS(F)                                                             \
  (op.Has("ftz") ? (op.Has("sat") ? &Map<&F<true, true>>::Run : &Map<&F<true, false>>::Run) \
                 : (op.Has("sat") ? &Map<&F<false, true>>::Run : &Map<&F<false, false>>::Run))
#define KGRPO_FLUSH_VARIANTS(F) (op.Has("ftz") ? &Map<&F<true>>::Run : &Map<&F<false>>::Run)
#define KGRPO_HALF2(F)                          \
  case Type::kF16:                              \
    return {&Map<&F<HalfFormat>>::Run};         \
  case Type::kF16x2:                            \
    return {&Map<&Pair2<&F<HalfFormat>>>::Run}; \
  case Type::kBf16:                             \
    return {&Map<&F<Bf16Format>>::Run};         \
  case Type::kBf16x2:                           \
    return {&Map<&Pair2<&F<Bf16Format>>>::Run};
#define KGRPO_HALF1(F)                          \
  case Type::kF16:                              \
    return {&Map<&F<HalfFormat>>::Run};         \
  case Type::kF16x2:                            \
    return {&Map<&Pair1<&F<HalfFormat>>>::Run}; \
  case Type::kBf16:                             \
    return {&Map<&F<Bf16Format>>::Run};         \
  case Type::kBf16x2:                           \
    return {&Map<&Pair1<&F<Bf16Format>>>::Run};
#define KGRPO_HALF3(F)                          \
  case Type::kF16:                              \
    return {&Map<&F<HalfFormat>>::Run};         \
  case Type::kF16x2:                            \
    return {&Map<&Pair3<&F<HalfFormat>>>::Run}; \
  case Type::kBf16:                             \
    return {&Map<&F<Bf16Format>>::Run};         \
  case Type::kBf16x2:                           \
    return {&Map<&Pair3<&F<Bf16Format>>>::Run};

template <typename T>
AluChoice FindExtended(int operation) {
  switch (operation) {
    case 0:
      return {&Extended<T, 0>};
    case 1:
      return {&Extended<T, 1>};
    case 2:
      return {&Extended<T, 2>};
    default:
      return {&Extended<T, 3>};
  }
}
AluChoice FindCarry(const Opcode& op, int operation) {
  return TypeBytes(op.type()) == 8                   ? FindExtended<uint64_t>(operation)
         : operation == 3 && op.type() == Type::kS32 ? FindExtended<int32_t>(operation)
                                                     : FindExtended<uint32_t>(operation);
}

AluChoice FindAdd(const Opcode& op) {
  if (op.Has("cc") || op.base == "addc") return FindCarry(op, 0);
  switch (op.type()) {
    case Type::kF32:
      return {KGRPO_FLOAT_VARIANTS(Fadd), DirectedRound(op)};
    case Type::kF64:
      return {&Map<&Dadd>::Run, DirectedRound(op)};
      KGRPO_HALF2(Hadd)
    case Type::kS32:
      return {op.Has("sat") ? &Map<&AddSat>::Run : &Map<&Add<int32_t>>::Run};
    case Type::kU16:
      return {&Map<&Add<uint16_t>>::Run};
    case Type::kS16:
      return {&Map<&Add<int16_t>>::Run};
    case Type::kU32:
      return {&Map<&Add<uint32_t>>::Run};
    case Type::kU64:
    case Type::kS64:
      return {&Map<&Add<uint64_t>>::Run};
    default:
      return {};
  }
}
AluChoice FindSub(const Opcode& op) {
  if (op.Has("cc") || op.base == "subc") return FindCarry(op, 1);
  switch (op.type()) {
    case Type::kF32:
      return {KGRPO_FLOAT_VARIANTS(Fsub), DirectedRound(op)};
    case Type::kF64:
      return {&Map<&Dsub>::Run, DirectedRound(op)};
      KGRPO_HALF2(Hsub)
    case Type::kS32:
      return {op.Has("sat") ? &Map<&SubSat>::Run : &Map<&Sub<int32_t>>::Run};
    case Type::kU16:
      return {&Map<&Sub<uint16_t>>::Run};
    case Type::kS16:
      return {&Map<&Sub<int16_t>>::Run};
    case Type::kU32:
      return {&Map<&Sub<uint32_t>>::Run};
    case Type::kU64:
    case Type::kS64:
      return {&Map<&Sub<uint64_t>>::Run};
    default:
      return {};
  }
}
AluChoice FindMul(const Opcode& op) {
  if (op.Has("wide")) {
    switch (op.type()) {
      case Type::kU16:
        return {&Map<&MulWide<uint16_t>>::Run};
      case Type::kS16:
        return {&Map<&MulWide<int16_t>>::Run};
      case Type::kU32:
        return {&Map<&MulWide<uint32_t>>::Run};
      case Type::kS32:
        return {&Map<&MulWide<int32_t>>::Run};
      default:
        return {};
    }
  }
  if (op.Has("hi")) {
    switch (op.type()) {
      KGRPO_CASES_16_32_64(MulHi)
      default:
        return {};
    }
  }
  switch (op.type()) {
    case Type::kF32:
      return {KGRPO_FLOAT_VARIANTS(Fmul), DirectedRound(op)};
    case Type::kF64:
      return {&Map<&Dmul>::Run, DirectedRound(op)};
      KGRPO_HALF2(Hmul)
      KGRPO_CASES_16_32_64(MulLo)
    default:
      return {};
  }
}
AluChoice FindMad(const Opcode& op) {
  if (op.Has("cc") || op.base == "madc") return FindCarry(op, op.Has("hi") ? 3 : 2);
  if (op.Has("wide")) {
    switch (op.type()) {
      case Type::kU16:
        return {&Map<&MadWide<uint16_t>>::Run};
      case Type::kS16:
        return {&Map<&MadWide<int16_t>>::Run};
      case Type::kU32:
        return {&Map<&MadWide<uint32_t>>::Run};
      case Type::kS32:
        return {&Map<&MadWide<int32_t>>::Run};
      default:
        return {};
    }
  }
  if (op.Has("hi")) {
    switch (op.type()) {
      KGRPO_CASES_16_32_64(MadHi)
      default:
        return {};
    }
  }
  switch (op.type()) {
    case Type::kF32:
      return {KGRPO_FLOAT_VARIANTS(Ffma), DirectedRound(op)};
    case Type::kF64:
      return {&Map<&Dfma>::Run, DirectedRound(op)};
      KGRPO_CASES_16_32_64(MadLo)
    default:
      return {};
  }
}
AluChoice FindFma(const Opcode& op) {
  if (op.Has("relu")) {
    switch (op.type()) {
      KGRPO_HALF3(HfmaRelu)
      default:
        return {};
    }
  }
  switch (op.type()) {
    case Type::kF32:
      return {KGRPO_FLOAT_VARIANTS(Ffma), DirectedRound(op)};
    case Type::kF64:
      return {&Map<&Dfma>::Run, DirectedRound(op)};
    case Type::kF16:
      return {op.Has("sat") ? &Map<&HfmaSat<HalfFormat>>::Run : &Map<&Hfma<HalfFormat>>::Run};
    case Type::kF16x2:
      return {op.Has("sat") ? &Map<&Pair3<&HfmaSat<HalfFormat>>>::Run : &Map<&Pair3<&Hfma<HalfFormat>>>::Run};
    case Type::kBf16:
      return {&Map<&Hfma<Bf16Format>>::Run};
    case Type::kBf16x2:
      return {&Map<&Pair3<&Hfma<Bf16Format>>>::Run};
    default:
      return {};
  }
}
AluChoice FindHalfSaturated(const Opcode& op) {  // add.sat.f16 and the like
  switch (op.type()) {
    case Type::kF16:
      return {op.base == "add"   ? &Map<&HaddSat<HalfFormat>>::Run
              : op.base == "sub" ? &Map<&HsubSat<HalfFormat>>::Run
                                 : &Map<&HmulSat<HalfFormat>>::Run};
    case Type::kF16x2:
      return {op.base == "add"   ? &Map<&Pair2<&HaddSat<HalfFormat>>>::Run
              : op.base == "sub" ? &Map<&Pair2<&HsubSat<HalfFormat>>>::Run
                                 : &Map<&Pair2<&HmulSat<HalfFormat>>>::Run};
    default:
      return {};
  }
}
AluChoice FindDiv(const Opcode& op) {
  switch (op.type()) {
    case Type::kF32:
      return {KGRPO_FLUSH_VARIANTS(Fdiv), DirectedRound(op)};
    case Type::kF64:
      return {&Map<&Ddiv>::Run, DirectedRound(op)};
      KGRPO_CASES_16_32_64(Div)
    default:
      return {};
  }
}
AluChoice FindRem(const Opcode& op) {
  switch (op.type()) {
    KGRPO_CASES_16_32_64(Rem)
    default:
      return {};
  }
}
AluChoice FindNeg(const Opcode& op) {
  switch (op.type()) {
    case Type::kF32:
      return {KGRPO_FLUSH_VARIANTS(Fneg)};
    case Type::kF64:
      return {&Map<&Dneg>::Run};
      KGRPO_HALF1(Hneg)
      KGRPO_CASES_16_32_64(Neg)
    default:
      return {};
  }
}
AluChoice FindAbs(const Opcode& op) {
  switch (op.type()) {
    case Type::kF32:
      return {KGRPO_FLUSH_VARIANTS(Fabs)};
    case Type::kF64:
      return {&Map<&Dabs>::Run};
      KGRPO_HALF1(Habs)
    case Type::kS16:
      return {&Map<&Abs<int16_t>>::Run};
    case Type::kS32:
      return {&Map<&Abs<int32_t>>::Run};
    case Type::kS64:
      return {&Map<&Abs<int64_t>>::Run};
    default:
      return {};
  }
}
AluChoice FindMin(const Opcode& op) {
  if (op.Has("xorsign")) return {};
  const bool nan = op.Has("NaN");
  switch (op.type()) {
    case Type::kF32:
      return {nan ? &Map<&FminNan>::Run : KGRPO_FLUSH_VARIANTS(Fmin)};
    case Type::kF64:
      return {&Map<&FloatMin<double>>::Run};
    case Type::kF16:
      return {nan ? &Map<&HminNan<HalfFormat>>::Run : &Map<&Hmin<HalfFormat>>::Run};
    case Type::kF16x2:
      return {nan ? &Map<&Pair2<&HminNan<HalfFormat>>>::Run : &Map<&Pair2<&Hmin<HalfFormat>>>::Run};
    case Type::kBf16:
      return {nan ? &Map<&HminNan<Bf16Format>>::Run : &Map<&Hmin<Bf16Format>>::Run};
    case Type::kBf16x2:
      return {nan ? &Map<&Pair2<&HminNan<Bf16Format>>>::Run : &Map<&Pair2<&Hmin<Bf16Format>>>::Run};
    case Type::kS32:
      return {op.Has("relu") ? &Map<&MinRelu<int32_t>>::Run : &Map<&Min<int32_t>>::Run};
    case Type::kU32:
      return {&Map<&Min<uint32_t>>::Run};
    case Type::kU16:
      return {&Map<&Min<uint16_t>>::Run};
    case Type::kS16:
      return {&Map<&Min<int16_t>>::Run};
    case Type::kU64:
      return {&Map<&Min<uint64_t>>::Run};
    case Type::kS64:
      return {&Map<&Min<int64_t>>::Run};
    default:
      return {};
  }
}
AluChoice FindMax(const Opcode& op) {
  if (op.Has("xorsign")) return {};
  const bool nan = op.Has("NaN");
  switch (op.type()) {
    case Type::kF32:
      return {nan ? &Map<&FmaxNan>::Run : KGRPO_FLUSH_VARIANTS(Fmax)};
    case Type::kF64:
      return {&Map<&FloatMax<double>>::Run};
    case Type::kF16:
      return {nan ? &Map<&HmaxNan<HalfFormat>>::Run : &Map<&Hmax<HalfFormat>>::Run};
    case Type::kF16x2:
      return {nan ? &Map<&Pair2<&HmaxNan<HalfFormat>>>::Run : &Map<&Pair2<&Hmax<HalfFormat>>>::Run};
    case Type::kBf16:
      return {nan ? &Map<&HmaxNan<Bf16Format>>::Run : &Map<&Hmax<Bf16Format>>::Run};
    case Type::kBf16x2:
      return {nan ? &Map<&Pair2<&HmaxNan<Bf16Format>>>::Run : &Map<&Pair2<&Hmax<Bf16Format>>>::Run};
    case Type::kS32:
      return {op.Has("relu") ? &Map<&MaxRelu<int32_t>>::Run : &Map<&Max<int32_t>>::Run};
    case Type::kU32:
      return {&Map<&Max<uint32_t>>::Run};
    case Type::kU16:
      return {&Map<&Max<uint16_t>>::Run};
    case Type::kS16:
      return {&Map<&Max<int16_t>>::Run};
    case Type::kU64:
      return {&Map<&Max<uint64_t>>::Run};
    case Type::kS64:
      return {&Map<&Max<int64_t>>::Run};
    default:
      return {};
  }
}
AluChoice FindAnd(const Opcode& op) {
  if (op.type() == Type::kPred) return {&PredicateLogic<PredicateOperation::kAnd>};
  KGRPO_UNSIGNED(And)
}
AluChoice FindOr(const Opcode& op) {
  if (op.type() == Type::kPred) return {&PredicateLogic<PredicateOperation::kOr>};
  KGRPO_UNSIGNED(Or)
}
AluChoice FindXor(const Opcode& op) {
  if (op.type() == Type::kPred) return {&PredicateLogic<PredicateOperation::kXor>};
  KGRPO_UNSIGNED(Xor)
}
AluChoice FindNot(const Opcode& op) {
  if (op.type() == Type::kPred) return {&PredicateLogic<PredicateOperation::kNot>};
  KGRPO_UNSIGNED(Not)
}
AluChoice FindCnot(const Opcode& op){KGRPO_UNSIGNED(Cnot)} AluChoice
    FindShl(const Opcode& op){KGRPO_UNSIGNED(Shl)} AluChoice FindShr(const Opcode& op) {
  switch (op.type()) {
    KGRPO_CASES_16_32_64(Shr)
    default:
      return {};
  }
}
AluChoice FindShf(const Opcode& op) {
  if (op.type() != Type::kB32) return {};
  if (op.Has("l")) return {op.Has("clamp") ? &Map<&ShfLeftClamp>::Run : &Map<&ShfLeftWrap>::Run};
  return {op.Has("clamp") ? &Map<&ShfRightClamp>::Run : &Map<&ShfRightWrap>::Run};
}
AluChoice FindLop3(const Opcode& op) {
  if (op.type() != Type::kB32 || op.Has("or") || op.Has("and")) return {};
  return {&MapImmediate<&Lop3<uint32_t>>::Run};
}
AluChoice FindPopc(const Opcode& op) {
  return {TypeBytes(op.type()) == 8 ? &Map<&Popc<uint64_t>>::Run : &Map<&Popc<uint32_t>>::Run};
}
AluChoice FindClz(const Opcode& op) {
  return {TypeBytes(op.type()) == 8 ? &Map<&Clz<uint64_t>>::Run : &Map<&Clz<uint32_t>>::Run};
}
AluChoice FindBrev(const Opcode& op) {
  return {TypeBytes(op.type()) == 8 ? &Map<&Brev<uint64_t>>::Run : &Map<&Brev<uint32_t>>::Run};
}
AluChoice FindBfind(const Opcode& op) {
  const bool shift = op.Has("shiftamt");
  switch (op.type()) {
    case Type::kU32:
      return {shift ? &Map<&BfindShift<uint32_t>>::Run : &Map<&Bfind<uint32_t>>::Run};
    case Type::kS32:
      return {shift ? &Map<&BfindShift<int32_t>>::Run : &Map<&Bfind<int32_t>>::Run};
    case Type::kU64:
      return {shift ? &Map<&BfindShift<uint64_t>>::Run : &Map<&Bfind<uint64_t>>::Run};
    case Type::kS64:
      return {shift ? &Map<&BfindShift<int64_t>>::Run : &Map<&Bfind<int64_t>>::Run};
    default:
      return {};
  }
}
AluChoice FindBfe(const Opcode& op) {
  switch (op.type()) {
    case Type::kU32:
      return {&Map<&Bfe<uint32_t>>::Run};
    case Type::kS32:
      return {&Map<&Bfe<int32_t>>::Run};
    case Type::kU64:
      return {&Map<&Bfe<uint64_t>>::Run};
    case Type::kS64:
      return {&Map<&Bfe<int64_t>>::Run};
    default:
      return {};
  }
}
AluChoice FindBfi(const Opcode& op) {
  return {TypeBytes(op.type()) == 8 ? &BfiRun<uint64_t>::Run : &BfiRun<uint32_t>::Run};
}
AluChoice FindPrmt(const Opcode&) {
  return {&MapImmediate<&Prmt>::Run};
}
AluChoice FindDp4a(const Opcode& op) {
  const bool a = op.types[0] == Type::kS32, b = op.types[1] == Type::kS32;
  return {a ? (b ? &Map<&Dp4a<true, true>>::Run : &Map<&Dp4a<true, false>>::Run)
            : (b ? &Map<&Dp4a<false, true>>::Run : &Map<&Dp4a<false, false>>::Run)};
}
AluChoice FindSad(const Opcode& op) {
  switch (op.type()) {
    KGRPO_CASES_16_32_64(Sad)
    default:
      return {};
  }
}
AluChoice FindMul24(const Opcode& op) {
  if (op.Has("hi")) return {};
  if (op.base == "mad24") return {op.type() == Type::kS32 ? &Map<&Mad24>::Run : &Map<&Umad24>::Run};
  return {op.type() == Type::kS32 ? &Map<&Mul24>::Run : &Map<&Umul24>::Run};
}
AluChoice FindSelp(const Opcode& op) {
  return {TypeBytes(op.type()) == 8 ? &Select<uint64_t>::Run : &Select<uint32_t>::Run};
}
AluChoice FindSlct(const Opcode& op) {
  const bool wide = TypeBytes(op.types[0]) == 8;
  if (op.types[1] == Type::kF32)
    return {wide ? &Map<&SelectByFloat<uint64_t>>::Run : &Map<&SelectByFloat<uint32_t>>::Run};
  return {wide ? &Map<&SelectBySign<uint64_t>>::Run : &Map<&SelectBySign<uint32_t>>::Run};
}

// Calls `make` with a comparison of type T: make.template operator()<T, &F<T>>().
template <typename T, typename Make>
AluChoice WithComparison(const Opcode& op, Make make) {
  if (op.Has("eq")) return {make.template operator()<T, &Eq<T>>()};
  if (op.Has("lt") || op.Has("lo")) return {make.template operator()<T, &Lt<T>>()};
  if (op.Has("le") || op.Has("ls")) return {make.template operator()<T, &Le<T>>()};
  if (op.Has("gt") || op.Has("hi")) return {make.template operator()<T, &Gt<T>>()};
  if (op.Has("ge") || op.Has("hs")) return {make.template operator()<T, &Ge<T>>()};
  if constexpr (std::is_floating_point_v<T>) {
    if (op.Has("ne")) return {make.template operator()<T, &NeOrdered<T>>()};
    if (op.Has("neu")) return {make.template operator()<T, &Ne<T>>()};
    if (op.Has("equ")) return {make.template operator()<T, &Equ<T>>()};
    if (op.Has("ltu")) return {make.template operator()<T, &Ltu<T>>()};
    if (op.Has("leu")) return {make.template operator()<T, &Leu<T>>()};
    if (op.Has("gtu")) return {make.template operator()<T, &Gtu<T>>()};
    if (op.Has("geu")) return {make.template operator()<T, &Geu<T>>()};
    if (op.Has("num")) return {make.template operator()<T, &Num<T>>()};
    if (op.Has("nan")) return {make.template operator()<T, &Nan<T>>()};
  } else {
    if (op.Has("ne")) return {make.template operator()<T, &Ne<T>>()};
  }
  return {};
}
struct MakeCompare {
  template <typename T, bool (*F)(T, T)>
  Handler operator()() const {
    return &Compare<T, F>::Run;
  }
};
struct MakeValue {
  template <typename T, bool (*F)(T, T)>
  Handler operator()() const {
    return &CompareToValue<T, F>::Run;
  }
};
template <typename H>
struct MakeHalfCompare {
  template <typename T, bool (*F)(T, T)>
  Handler operator()() const {
    return &HalfCompare<H, F>::Run;
  }
};
template <typename H>
struct MakeHalfValue {
  template <typename T, bool (*F)(T, T)>
  Handler operator()() const {
    return &HalfCompareToValue<H, F>::Run;
  }
};
AluChoice FindSetp(const Opcode& op) {
  switch (op.type()) {
    case Type::kU16:
    case Type::kB16:
      return WithComparison<uint16_t>(op, MakeCompare{});
    case Type::kS16:
      return WithComparison<int16_t>(op, MakeCompare{});
    case Type::kU32:
    case Type::kB32:
      return WithComparison<uint32_t>(op, MakeCompare{});
    case Type::kS32:
      return WithComparison<int32_t>(op, MakeCompare{});
    case Type::kU64:
    case Type::kB64:
      return WithComparison<uint64_t>(op, MakeCompare{});
    case Type::kS64:
      return WithComparison<int64_t>(op, MakeCompare{});
    case Type::kF32:
      return WithComparison<float>(op, MakeCompare{});
    case Type::kF64:
      return WithComparison<double>(op, MakeCompare{});
    case Type::kF16:
    case Type::kF16x2:
      return WithComparison<float>(op, MakeHalfCompare<HalfFormat>{});
    case Type::kBf16:
    case Type::kBf16x2:
      return WithComparison<float>(op, MakeHalfCompare<Bf16Format>{});
    default:
      return {};
  }
}
AluChoice FindSet(const Opcode& op) {
  switch (op.types[1]) {
    case Type::kU32:
      return WithComparison<uint32_t>(op, MakeValue{});
    case Type::kS32:
      return WithComparison<int32_t>(op, MakeValue{});
    case Type::kF32:
      return WithComparison<float>(op, MakeValue{});
    case Type::kF16:
    case Type::kF16x2:
      return WithComparison<float>(op, MakeHalfValue<HalfFormat>{});
    case Type::kBf16:
    case Type::kBf16x2:
      return WithComparison<float>(op, MakeHalfValue<Bf16Format>{});
    default:
      return {};
  }
}

AluChoice FindRcp(const Opcode& op) {
  if (op.type() == Type::kF64) return {op.Has("approx") ? &Map<&DrcpApprox>::Run : &Map<&Drcp>::Run, DirectedRound(op)};
  if (op.type() == Type::kF32) return {KGRPO_FLUSH_VARIANTS(Frcp), DirectedRound(op)};
  return {};
}
AluChoice FindSqrt(const Opcode& op) {
  if (op.type() == Type::kF64) return {&Map<&Dsqrt>::Run, DirectedRound(op)};
  if (op.type() == Type::kF32) return {KGRPO_FLUSH_VARIANTS(Fsqrt), DirectedRound(op)};
  return {};
}
AluChoice FindRsqrt(const Opcode& op) {
  if (op.type() == Type::kF64) return {&Map<&DrsqrtApprox>::Run};
  if (op.type() == Type::kF32) return {KGRPO_FLUSH_VARIANTS(Frsqrt)};
  return {};
}
AluChoice FindEx2(const Opcode& op) {
  switch (op.type()) {
    case Type::kF32:
      return {KGRPO_FLUSH_VARIANTS(Fex2)};
      KGRPO_HALF1(Hex2)
    default:
      return {};
  }
}
AluChoice FindTanh(const Opcode& op) {
  switch (op.type()) {
    case Type::kF32:
      return {&Map<&Ftanh>::Run};
      KGRPO_HALF1(Htanh)
    default:
      return {};
  }
}
AluChoice FindLg2(const Opcode& op) {
  return op.type() == Type::kF32 ? AluChoice{KGRPO_FLUSH_VARIANTS(Flg2)} : AluChoice{};
}
AluChoice FindSin(const Opcode& op) {
  return op.type() == Type::kF32 ? AluChoice{KGRPO_FLUSH_VARIANTS(Fsin)} : AluChoice{};
}
AluChoice FindCos(const Opcode& op) {
  return op.type() == Type::kF32 ? AluChoice{KGRPO_FLUSH_VARIANTS(Fcos)} : AluChoice{};
}
AluChoice FindCopysign(const Opcode& op) {
  return {op.type() == Type::kF64 ? &Map<&Dcopysign>::Run : &Map<&Fcopysign>::Run};
}
template <typename T>
AluChoice FindClass(const Opcode& op) {
  if (op.Has("normal")) return {&TestClass<T, Class::kNormal>};
  if (op.Has("subnormal")) return {&TestClass<T, Class::kSubnormal>};
  if (op.Has("finite")) return {&TestClass<T, Class::kFinite>};
  if (op.Has("infinite")) return {&TestClass<T, Class::kInfinite>};
  if (op.Has("number")) return {&TestClass<T, Class::kNumber>};
  if (op.Has("notanumber")) return {&TestClass<T, Class::kNotANumber>};
  return {};
}
AluChoice FindTestp(const Opcode& op) {
  return op.type() == Type::kF64 ? FindClass<double>(op) : FindClass<float>(op);
}
AluChoice FindMov(const Opcode& op) {
  if (op.type() == Type::kPred) return {&PredicateLogic<PredicateOperation::kMove>};
  return {TypeBytes(op.type()) == 8 ? &Map<&Copy<uint64_t>>::Run : &Map<&Copy<uint32_t>>::Run};
}

// ---- cvt ----

enum class Kind { kInteger, kFloat, kHalf, kOther };
Kind KindOf(Type type) {
  switch (type) {
    case Type::kU8:
    case Type::kS8:
    case Type::kB8:
    case Type::kU16:
    case Type::kS16:
    case Type::kB16:
    case Type::kU32:
    case Type::kS32:
    case Type::kB32:
    case Type::kU64:
    case Type::kS64:
    case Type::kB64:
      return Kind::kInteger;
    case Type::kF32:
    case Type::kF64:
      return Kind::kFloat;
    case Type::kF16:
    case Type::kBf16:
      return Kind::kHalf;
    default:
      return Kind::kOther;
  }
}
// Calls `make.template operator()<T>()` with the C++ type of an integer type.
template <typename Make>
AluChoice WithInteger(Type type, Make make) {
  switch (type) {
    case Type::kU8:
    case Type::kB8:
      return make.template operator()<uint8_t>();
    case Type::kS8:
      return make.template operator()<int8_t>();
    case Type::kU16:
    case Type::kB16:
      return make.template operator()<uint16_t>();
    case Type::kS16:
      return make.template operator()<int16_t>();
    case Type::kU32:
    case Type::kB32:
      return make.template operator()<uint32_t>();
    case Type::kS32:
      return make.template operator()<int32_t>();
    case Type::kU64:
    case Type::kB64:
      return make.template operator()<uint64_t>();
    case Type::kS64:
      return make.template operator()<int64_t>();
    default:
      return {};
  }
}
int WholeRound(const Opcode& op) {
  return op.Has("rni") ? 0 : op.Has("rzi") ? 1 : op.Has("rmi") ? 2 : op.Has("rpi") ? 3 : -1;
}
template <typename D>
AluChoice IntegerFromFloat(Type source, int round) {
#define KGRPO_ROUNDS(F, S)               \
  (round == 0   ? &Map<&F<D, S, 0>>::Run \
   : round == 2 ? &Map<&F<D, S, 2>>::Run \
   : round == 3 ? &Map<&F<D, S, 3>>::Run \
                : &Map<&F<D, S, 1>>::Run)
  switch (source) {
    case Type::kF32:
      return {KGRPO_ROUNDS(FloatToInteger, float)};
    case Type::kF64:
      return {KGRPO_ROUNDS(FloatToInteger, double)};
    case Type::kF16:
      return {KGRPO_ROUNDS(HalfToInteger, HalfFormat)};
    case Type::kBf16:
      return {KGRPO_ROUNDS(HalfToInteger, Bf16Format)};
    default:
      return {};
  }
#undef KGRPO_ROUNDS
}
template <typename H>
AluChoice HalfFromFloat(const Opcode& op) {
  if (op.Has("sat")) return {&Map<&HalfNarrowSat<H>>::Run};
  if (op.Has("relu")) return {&Map<&HalfNarrowRelu<H>>::Run};
  if (op.Has("rz")) return {&Map<&HalfNarrowDirected<H, 1>>::Run};
  if (op.Has("rm")) return {&Map<&HalfNarrowDirected<H, 2>>::Run};
  if (op.Has("rp")) return {&Map<&HalfNarrowDirected<H, 3>>::Run};
  return {&Map<&HalfNarrow<H>>::Run};
}
template <typename H>
AluChoice ToHalf(const Opcode& op) {
  const Type source = op.types[1];
  if (source == Type::kF32) return HalfFromFloat<H>(op);
  if (source == Type::kF64) return {&Map<&HalfNarrowDouble<H>>::Run};
  if (source == op.types[0]) {
    switch (WholeRound(op)) {
      case 0:
        return {&Map<&HalfWhole<H, 0>>::Run};
      case 1:
        return {&Map<&HalfWhole<H, 1>>::Run};
      case 2:
        return {&Map<&HalfWhole<H, 2>>::Run};
      case 3:
        return {&Map<&HalfWhole<H, 3>>::Run};
      default:
        return {&Map<&Copy<uint32_t>>::Run};
    }
  }
  if (KindOf(source) == Kind::kInteger) {
    return WithInteger(source, []<typename S>() -> AluChoice { return {&Map<&HalfFromInteger<H, S>>::Run}; });
  }
  return {};
}
AluChoice FindCvt(const Opcode& op) {
  const Type to = op.types[0], from = op.types[1];
  if (op.Has("pack") || op.type_count < 2 || op.Has("satfinite")) return {};
  if (to == Type::kF16x2 && from == Type::kF32)
    return {op.Has("relu") ? &Map<&PackPairRelu<HalfFormat>>::Run : &Map<&PackPair<HalfFormat>>::Run};
  if (to == Type::kBf16x2 && from == Type::kF32)
    return {op.Has("relu") ? &Map<&PackPairRelu<Bf16Format>>::Run : &Map<&PackPair<Bf16Format>>::Run};
  const Kind target = KindOf(to), source = KindOf(from);
  const bool sat = op.Has("sat");
  if (target == Kind::kInteger && source == Kind::kInteger) {
    return WithInteger(to, [&]<typename D>() {
      return WithInteger(from, [&]<typename S>() -> AluChoice {
        return {sat ? &Map<&IntegerSaturated<D, S>>::Run : &Map<&Integer<D, S>>::Run};
      });
    });
  }
  if (target == Kind::kInteger) {
    return WithInteger(to, [&]<typename D>() { return IntegerFromFloat<D>(from, WholeRound(op)); });
  }
  if (target == Kind::kFloat && source == Kind::kInteger) {
    if (sat) return {};
    AluChoice choice = WithInteger(from, [&]<typename S>() -> AluChoice {
      return {to == Type::kF32 ? &Map<&FromInteger<float, S>>::Run : &Map<&FromInteger<double, S>>::Run};
    });
    choice.round = DirectedRound(op);
    return choice;
  }
  if (to == Type::kF32 && from == Type::kF32) {
    switch (WholeRound(op)) {
      case 0:
        return {&Map<&FloatWhole<float, 0>>::Run};
      case 1:
        return {&Map<&FloatWhole<float, 1>>::Run};
      case 2:
        return {&Map<&FloatWhole<float, 2>>::Run};
      case 3:
        return {&Map<&FloatWhole<float, 3>>::Run};
      default:
        return {KGRPO_FLOAT_VARIANTS(FloatCopy)};
    }
  }
  if (to == Type::kF64 && from == Type::kF64) {
    switch (WholeRound(op)) {
      case 0:
        return {&Map<&FloatWhole<double, 0>>::Run};
      case 1:
        return {&Map<&FloatWhole<double, 1>>::Run};
      case 2:
        return {&Map<&FloatWhole<double, 2>>::Run};
      case 3:
        return {&Map<&FloatWhole<double, 3>>::Run};
      default:
        return {sat ? &Map<&DoubleCopySat>::Run : &Map<&DoubleCopy>::Run};
    }
  }
  if (sat && target != Kind::kHalf) return {};
  if (to == Type::kF32 && from == Type::kF64) return {&Map<&NarrowDouble>::Run, DirectedRound(op)};
  if (to == Type::kF64 && from == Type::kF32) return {&Map<&WidenFloat>::Run};
  if (to == Type::kF32 && from == Type::kF16) return {&Map<&HalfWiden<HalfFormat>>::Run};
  if (to == Type::kF32 && from == Type::kBf16) return {&Map<&HalfWiden<Bf16Format>>::Run};
  if (to == Type::kF64 && from == Type::kF16) return {&Map<&HalfWidenDouble<HalfFormat>>::Run};
  if (to == Type::kF64 && from == Type::kBf16) return {&Map<&HalfWidenDouble<Bf16Format>>::Run};
  if (to == Type::kF16) return ToHalf<HalfFormat>(op);
  if (to == Type::kBf16) return ToHalf<Bf16Format>(op);
  return {};
}

AluChoice Find(const Opcode& op) {
  // An array, not a map of the standard library: no code with external linkage may be compiled for AVX2.
  static constexpr struct {
    std::string_view base;
    AluChoice (*find)(const Opcode&);
  } kFinders[] = {{"add", &FindAdd},     {"addc", &FindAdd},    {"sub", &FindSub},           {"subc", &FindSub},
                  {"mul", &FindMul},     {"mad", &FindMad},     {"madc", &FindMad},          {"fma", &FindFma},
                  {"div", &FindDiv},     {"rem", &FindRem},     {"neg", &FindNeg},           {"abs", &FindAbs},
                  {"min", &FindMin},     {"max", &FindMax},     {"and", &FindAnd},           {"or", &FindOr},
                  {"xor", &FindXor},     {"not", &FindNot},     {"cnot", &FindCnot},         {"shl", &FindShl},
                  {"shr", &FindShr},     {"shf", &FindShf},     {"lop3", &FindLop3},         {"popc", &FindPopc},
                  {"clz", &FindClz},     {"brev", &FindBrev},   {"bfind", &FindBfind},       {"bfe", &FindBfe},
                  {"bfi", &FindBfi},     {"prmt", &FindPrmt},   {"dp4a", &FindDp4a},         {"sad", &FindSad},
                  {"mul24", &FindMul24}, {"mad24", &FindMul24}, {"selp", &FindSelp},         {"slct", &FindSlct},
                  {"setp", &FindSetp},   {"set", &FindSet},     {"rcp", &FindRcp},           {"sqrt", &FindSqrt},
                  {"rsqrt", &FindRsqrt}, {"ex2", &FindEx2},     {"lg2", &FindLg2},           {"sin", &FindSin},
                  {"cos", &FindCos},     {"tanh", &FindTanh},   {"copysign", &FindCopysign}, {"testp", &FindTestp},
                  {"mov", &FindMov},     {"cvt", &FindCvt}};
  const Type type = op.type();
  if (op.Has("sat") && (type == Type::kF16 || type == Type::kF16x2) &&
      (op.base == "add" || op.base == "sub" || op.base == "mul")) {
    return FindHalfSaturated(op);
  }
  for (const auto& finder : kFinders) {
    if (finder.base == op.base) return finder.find(op);
  }
  return {};
}

}  // namespace
}  // namespace kgrpo::simt
#endif  // KGRPO_EVALUATOR_SIM_SIMT_ALU_FIND_H_
