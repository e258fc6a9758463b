// Arithmetic handlers for any machine.
#include "simt/alu/alu_find.inc"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace kgrpo::simt {

AluChoice FindAluGeneric(const Opcode& opcode) { return Find(opcode); }

// The handler behind the pointer reads its operands from memory and writes its results there, so no compiler can move
// its arithmetic across the changes of mode.
void RunRounded(Warp& warp, const Instruction& instruction, uint32_t mask) {
#if defined(__SSE2__)
  // Floats are computed by SSE and its successors, so only their control register is set. Setting the x87's would take
  // longer than the arithmetic.
  const auto mode = static_cast<unsigned>(instruction.offset);
  const unsigned bits = mode == FE_DOWNWARD     ? _MM_ROUND_DOWN
                        : mode == FE_UPWARD     ? _MM_ROUND_UP
                        : mode == FE_TOWARDZERO ? _MM_ROUND_TOWARD_ZERO
                                                : _MM_ROUND_NEAREST;
  const unsigned before = _mm_getcsr();
  _mm_setcsr((before & ~static_cast<unsigned>(_MM_ROUND_MASK)) | bits);
  instruction.inner(warp, instruction, mask);
  _mm_setcsr(before);
#else
  std::fesetround(static_cast<int>(instruction.offset));
  instruction.inner(warp, instruction, mask);
  std::fesetround(FE_TONEAREST);
#endif
}

}  // namespace kgrpo::simt
