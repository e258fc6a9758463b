#include "draft/float64_words.h"

#include <functional>
#include <set>

namespace kgrpo::evaluator {

const std::map<std::string, std::string>& MathFunctions() {
  static const std::map<std::string, std::string> kFunctions = [] {
    std::map<std::string, std::string> functions = {
        {"fmax", "fmax"},    {"fmin", "fmin"},       {"max", "fmax"},   {"min", "fmin"},   {"abs", "fabs"},
        {"__expf", "exp"},   {"__logf", "log"},      {"__sinf", "sin"}, {"__cosf", "cos"}, {"__powf", "pow"},
        {"__log2f", "log2"}, {"__fsqrt_rn", "sqrt"}, {"fmaxf", "fmax"}, {"fminf", "fmin"}, {"__fmaf_rn", "fma"}};
    for (const char* name :
         {"exp",   "log",   "sqrt",  "fabs", "tanh",  "sin",  "cos",   "tan",   "pow",      "erf",   "erfc",
          "floor", "ceil",  "round", "rint", "trunc", "fma",  "log1p", "expm1", "log2",     "log10", "exp2",
          "atan",  "atan2", "asin",  "acos", "sinh",  "cosh", "cbrt",  "fmod",  "copysign", "hypot"}) {
      functions[name] = name;
      functions[std::string(name) + "f"] = name;
    }
    return functions;
  }();
  return kFunctions;
}

namespace {

constexpr const char* kHelpers =
    "double rsqrtf(double x) { return 1.0 / std::sqrt(x); }\n"
    "double rsqrt(double x) { return 1.0 / std::sqrt(x); }\n"
    "double fdividef(double x, double y) { return x / y; }\n"
    "double __fdividef(double x, double y) { return x / y; }\n"
    "double __frcp_rn(double x) { return 1.0 / x; }\n"
    "double __half2float(double x) { return x; }\n"
    "double __float2half(double x) { return x; }\n"
    "double __bfloat162float(double x) { return x; }\n"
    "double __float2bfloat16(double x) { return x; }\n";

}  // namespace

std::string HelperText(const std::string& name) {
  const std::string text(kHelpers);
  const size_t at = text.find("double " + name + "(");
  return at == std::string::npos ? "" : "static " + text.substr(at, text.find('\n', at) + 1 - at);
}

bool IsFloatType(const Token& token) {
  for (const char* type : {"float", "half", "__half", "__nv_bfloat16", "nv_bfloat16"}) {
    if (token.Is(type)) return true;
  }
  return false;
}

bool IsKnownWord(const Token& token) {
  static const std::set<std::string, std::less<>> kWords = {
      "const",   "constexpr",   "int",     "unsigned", "long",  "short", "bool",   "double",   "auto",   "size_t",
      "int64_t", "if",          "else",    "for",      "while", "do",    "break",  "continue", "true",   "false",
      "return",  "static_cast", "int32_t", "uint32_t", "char",  "void",  "switch", "case",     "default"};
  return kWords.contains(token.text);
}

bool IsDeclaring(const Token& token) {
  static const std::set<std::string, std::less<>> kTypes = {
      "int", "unsigned", "long", "short", "bool", "double", "auto", "size_t", "int64_t", "int32_t", "uint32_t"};
  return kTypes.contains(token.text) || IsFloatType(token);
}

}  // namespace kgrpo::evaluator
