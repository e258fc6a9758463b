// An opcode taken apart: "fma.rn.ftz.f32" is base "fma", modifiers "rn" and "ftz", type f32.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "simt/ptx/ptx_syntax.h"
#include "simt/state/program.h"

namespace kgrpo::simt {

struct Opcode {
  std::string_view base;
  std::array<std::string_view, 12> modifiers;  // in order, without dots, types left out
  int modifier_count = 0;
  std::array<Type, 4> types{Type::kNone, Type::kNone, Type::kNone, Type::kNone};
  int type_count = 0;

  explicit Opcode(std::string_view text);
  // Not inline, as alu_avx2.cc must not hold a copy of it that other machines might run.
  bool Has(std::string_view modifier) const;
  Type type() const { return types[0]; }
};

// The handler of an arithmetic, logic or conversion instruction, null where there is none. `round` is set where it must
// run under another rounding mode than to-nearest (an FE_ constant of <cfenv>): then Instruction::run is RunRounded,
// `inner` the handler and `offset` the mode.
struct AluChoice {
  Handler handler = nullptr;
  int round = -1;
};

// The same source compiled twice: for the machine's vector units and for any machine. Results are identical.
AluChoice FindAluAvx2(const Opcode& opcode);
AluChoice FindAluGeneric(const Opcode& opcode);
// The better one that this machine runs.
AluChoice FindAlu(const Opcode& opcode);

void RunRounded(Warp& warp, const Instruction& instruction, uint32_t mask);

}  // namespace kgrpo::simt
