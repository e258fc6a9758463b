// The vector build of the arithmetic handlers gives the same bits as the portable build, for whole and partial warps.
#include "simt/state/machine.h"
#include "simt/state/opcode.h"
#include "test.h"

namespace kgrpo::simt {
namespace {

#if defined(__x86_64__)
constexpr const char* kOpcodes =
    "add.s32 add.u16 add.s64 add.f32 add.ftz.f32 add.rz.f32 add.sat.f32 add.f64 add.rm.f64 add.f16 add.f16x2 "
    "add.bf16x2 sub.s32 sub.f32 sub.f64 mul.lo.s32 mul.lo.u64 mul.hi.s32 mul.hi.u64 mul.wide.s32 mul.wide.u16 mul.f32 "
    "mul.f64 mul.f16x2 mad.lo.s32 mad.lo.u64 mad.wide.s32 mad.hi.u32 fma.rn.f32 fma.rm.f32 fma.rn.ftz.f32 fma.rn.f64 "
    "fma.rn.f16x2 fma.rn.bf16x2 div.rn.f32 div.rn.f64 div.s32 div.u64 rem.s32 rem.u32 neg.s32 neg.f32 abs.f32 abs.s32 "
    "add.ftz.f16x2 mul.bf16x2 div.approx.f32 rcp.approx.ftz.f64 rsqrt.approx.f64 rsqrt.approx.ftz.f64 min.f32 "
    "min.ftz.NaN.f32 max.f32 max.NaN.f32 min.s32 max.u64 min.f16x2 and.b32 or.b64 xor.b32 not.b32 shl.b32 shr.u32 "
    "shr.s32 shl.b64 shr.s64 shf.l.wrap.b32 shf.r.clamp.b32 popc.b32 clz.b64 brev.b32 bfind.s32 bfe.s32 bfe.u64 "
    "sad.s32 dp4a.s32.s32 rcp.rn.f32 rcp.approx.ftz.f32 sqrt.rn.f32 sqrt.approx.f32 sqrt.rn.f64 rsqrt.approx.f32 "
    "ex2.approx.f32 ex2.approx.ftz.f32 lg2.approx.f32 sin.approx.f32 cos.approx.f32 tanh.approx.f32 ex2.approx.f16x2 "
    "copysign.f32 mov.b32 mov.b64 cvt.rn.f32.s32 cvt.rn.f32.u32 cvt.rz.f32.s32 cvt.rn.f32.u64 cvt.rn.f64.s64 "
    "cvt.rni.s32.f32 cvt.rzi.u32.f32 cvt.rmi.s64.f64 cvt.rzi.u8.f32 cvt.rni.f32.f32 cvt.rpi.f64.f64 cvt.rn.f32.f64 "
    "cvt.f64.f32 cvt.sat.f32.f32 cvt.rn.f16.f32 cvt.f32.f16 cvt.rn.bf16.f32 cvt.rn.f16x2.f32 cvt.rz.f16.f32 "
    "cvt.rp.f16.s32 cvt.rm.f16.u64 cvt.rz.bf16.s64 cvt.rp.bf16.f64 cvt.rm.bf16.f16 cvt.rpi.ftz.s32.f32 "
    "cvt.rmi.ftz.f32.f32 cvt.rni.sat.f32.f32 cvt.rn.ftz.f32.f64 cvt.ftz.f64.f32 cvt.s64.s32 cvt.u32.u64 cvt.s32.s8 "
    "cvt.sat.u8.s32";

struct Lanes {
  alignas(64) uint64_t words[4][kLanes];
};

// Which NaN an operation on NaNs yields is not defined; it only has to be one.
void Canonicalise(const Opcode& opcode, Lanes& lanes) {
  auto* narrow = reinterpret_cast<float*>(lanes.words[0]);
  auto* wide = reinterpret_cast<double*>(lanes.words[0]);
  for (int l = 0; l < kLanes; ++l) {
    if (opcode.type() == Type::kF32 && std::isnan(narrow[l])) narrow[l] = NAN;
    if (opcode.type() == Type::kF64 && std::isnan(wide[l])) wide[l] = NAN;
  }
}

TEST(Alu, BothBuildsAgreeBitForBit) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) GTEST_SKIP() << "this machine has no AVX2";
  uint64_t state = 88172645463325252u;
  auto random = [&] {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  };
  std::istringstream opcodes(kOpcodes);
  for (std::string text; opcodes >> text;) {
    const Opcode opcode{text};
    const AluChoice vector = FindAluAvx2(opcode), generic = FindAluGeneric(opcode);
    ASSERT_NE(vector.handler, nullptr) << text;
    ASSERT_NE(generic.handler, nullptr) << text;
    ASSERT_NE(vector.handler, generic.handler) << text;
    EXPECT_EQ(vector.round, generic.round) << text;
    for (int round = 0; round < 200; ++round) {
      Lanes a, b;
      for (auto& slot : a.words) {
        for (uint64_t& word : slot) {
          word = random();
          // floats of everyday size in half of the rounds: random bits are mostly huge or tiny
          if (round % 2 == 0) word = (word & 0x83FFFFFF83FFFFFFull) | 0x3C0000003C000000ull;
        }
      }
      b = a;
      const uint32_t mask = round % 4 == 3 ? static_cast<uint32_t>(random()) | 1u : kAllLanes;
      auto run = [&](const AluChoice& choice, Lanes& lanes) {
        Warp warp;
        warp.registers = reinterpret_cast<std::byte*>(lanes.words);
        warp.sources = {warp.registers, warp.registers};
        Instruction in;
        in.d = 0;
        in.a = sizeof lanes.words[0];
        in.b = 2 * sizeof lanes.words[0];
        in.c = 3 * sizeof lanes.words[0];
        in.offset = choice.round;
        in.inner = choice.handler;
        in.run = choice.round >= 0 ? &RunRounded : choice.handler;
        in.run(warp, in, mask);
      };
      run(vector, a);
      run(generic, b);
      Canonicalise(opcode, a);
      Canonicalise(opcode, b);
      ASSERT_EQ(std::memcmp(&a, &b, sizeof a), 0) << text << " round " << round;
    }
  }
}
#endif

}  // namespace
}  // namespace kgrpo::simt
