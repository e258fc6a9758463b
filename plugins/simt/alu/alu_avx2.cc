// Arithmetic handlers compiled for AVX2 and FMA (see CMakeLists.txt), chosen at run time where the machine has them.
#include "simt/alu/alu_find.inc"

namespace kgrpo::simt {

AluChoice FindAluAvx2(const Opcode& opcode) { return Find(opcode); }

}  // namespace kgrpo::simt
