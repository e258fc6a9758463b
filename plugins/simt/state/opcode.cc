#include "simt/state/opcode.h"

namespace kgrpo::simt {

Opcode::Opcode(std::string_view text) {
  bool first = true;
  while (!text.empty()) {
    const size_t dot = text.find('.', 1);
    const std::string_view part = text.substr(0, dot);
    text = dot == std::string_view::npos ? std::string_view{} : text.substr(dot);
    if (first) {
      base = part;
      first = false;
      continue;
    }
    const Type type = TypeByName(part);
    if (type != Type::kNone && type_count < 4) {
      types[static_cast<size_t>(type_count++)] = type;
    } else if (static_cast<size_t>(modifier_count) < modifiers.size()) {
      modifiers[static_cast<size_t>(modifier_count++)] = part.substr(1);
    }
  }
}

bool Opcode::Has(std::string_view modifier) const {
  for (int i = 0; i < modifier_count; ++i) {
    if (modifiers[static_cast<size_t>(i)] == modifier) return true;
  }
  return false;
}

AluChoice FindAlu(const Opcode& opcode) {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (has_avx2) return FindAluAvx2(opcode);
#endif
  return FindAluGeneric(opcode);
}

}  // namespace kgrpo::simt
