// Tensor core instructions.
#include "evaluator_sim/simt/handlers.h"

namespace kgrpo::simt {

Handler FindLdMatrix(const Opcode&, Instruction&) {
  return nullptr;
}
Handler FindMma(const Opcode&, Instruction&) {
  return nullptr;
}
Handler FindWmma(const Opcode&, Instruction&) {
  return nullptr;
}

}  // namespace kgrpo::simt
