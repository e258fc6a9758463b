// Arithmetic handlers for any machine.
#include "evaluator_sim/simt/alu_find.inc"

namespace kgrpo::simt {

AluChoice FindAluGeneric(const Opcode& opcode) {
  return Find(opcode);
}

// The handler behind the pointer reads its operands from memory and writes its results there, so no compiler can move
// its arithmetic across the changes of mode.
void RunRounded(Warp& warp, const Instruction& instruction, uint32_t mask) {
  std::fesetround(static_cast<int>(instruction.offset));
  instruction.inner(warp, instruction, mask);
  std::fesetround(FE_TONEAREST);
}

}  // namespace kgrpo::simt
