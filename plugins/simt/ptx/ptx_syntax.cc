#include "simt/ptx/ptx_syntax.h"

#include <kgrpo/sdk/error.h>

#include <array>

namespace kgrpo::simt {
namespace {

constexpr std::array<std::string_view, 21> kTypeNames = {".pred", ".b8",    ".b16",  ".b32",    ".b64", ".b128", ".u8",
                                                         ".u16",  ".u32",   ".u64",  ".s8",     ".s16", ".s32",  ".s64",
                                                         ".f16",  ".f16x2", ".bf16", ".bf16x2", ".f32", ".f64",  ""};

}  // namespace

uint32_t TypeBytes(Type type) {
  static constexpr std::array<uint8_t, 21> kBytes = {1, 1, 2, 4, 8, 16, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 2, 4, 4, 8, 0};
  return kBytes[static_cast<size_t>(type)];
}

bool TypeIsSigned(Type type) {
  return type == Type::kS8 || type == Type::kS16 || type == Type::kS32 || type == Type::kS64;
}

Type TypeByName(std::string_view dotted) {
  for (size_t i = 0; i + 1 < kTypeNames.size(); ++i) {
    if (kTypeNames[i] == dotted) return static_cast<Type>(i);
  }
  return Type::kNone;
}

std::string Refusal(const PtxModule& module, const SourceLine& where, int ptx_line, const std::string& what) {
  std::string place;
  if (where.line > 0 && where.file < module.files.size() && !module.files[where.file].empty()) {
    // The name without its folder, which is a temporary one of the compilation.
    const std::string& path = module.files[where.file];
    place = path.substr(path.rfind('/') + 1) + ":" + std::to_string(where.line);
  } else {
    place = "PTX line " + std::to_string(ptx_line);
  }
  return place + ": " + what + " is not supported by the GPU interpreter";
}

void Refuse(const PtxModule& module, const SourceLine& where, int ptx_line, const std::string& what) {
  throw Error(KGRPO_ERROR_UNSUPPORTED, Refusal(module, where, ptx_line, what));
}

}  // namespace kgrpo::simt
