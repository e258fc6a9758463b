#include "draft/thread_index.h"

#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "judge/problem/expression.h"

namespace kgrpo::evaluator {

using cuda_source::Lex, cuda_source::LexedSource, cuda_source::SourceReader, cuda_source::Token;

std::optional<ElementType> ElementTypeOf(std::string type) {
  static const std::map<std::string, DType> kTypes = {{"float", DType::kFloat32},
                                                      {"double", DType::kFloat64},
                                                      {"__half", DType::kFloat16},
                                                      {"half", DType::kFloat16},
                                                      {"__nv_bfloat16", DType::kBfloat16},
                                                      {"nv_bfloat16", DType::kBfloat16},
                                                      {"int", DType::kInt32},
                                                      {"int32_t", DType::kInt32},
                                                      {"unsigned", DType::kUint32},
                                                      {"uint", DType::kUint32},
                                                      {"uint32_t", DType::kUint32},
                                                      {"long long", DType::kInt64},
                                                      {"longlong", DType::kInt64},
                                                      {"long", DType::kInt64},
                                                      {"int64_t", DType::kInt64},
                                                      {"size_t", DType::kInt64},
                                                      {"ptrdiff_t", DType::kInt64},
                                                      {"clock_t", DType::kInt64},
                                                      {"unsigned long long", DType::kInt64},
                                                      {"unsigned long", DType::kInt64},
                                                      {"ulonglong", DType::kInt64},
                                                      {"uint64_t", DType::kInt64},
                                                      {"unsigned char", DType::kUint8},
                                                      {"uchar", DType::kUint8},
                                                      {"uint8_t", DType::kUint8},
                                                      {"int8_t", DType::kInt8},
                                                      {"signed char", DType::kInt8},
                                                      {"char", DType::kInt8},
                                                      {"short", DType::kInt16},
                                                      {"int16_t", DType::kInt16},
                                                      {"unsigned short", DType::kUint16},
                                                      {"ushort", DType::kUint16},
                                                      {"uint16_t", DType::kUint16},
                                                      {"bool", DType::kBool}};
  static const std::map<std::string, std::string> kPairs = {
      {"cuComplex", "float2"}, {"cuFloatComplex", "float2"}, {"cuDoubleComplex", "double2"}};
  if (const auto pair = kPairs.find(type); pair != kPairs.end()) type = pair->second;
  if (type.ends_with(" int")) type.resize(type.size() - 4);  // `unsigned int`, `long long int`
  if (const auto found = kTypes.find(type); found != kTypes.end()) return ElementType{found->second, 1};
  const int lanes = type.empty() ? 0 : type.back() - '0';
  if (lanes < 2 || lanes > 4) return std::nullopt;
  const auto found = kTypes.find(type.substr(0, type.size() - 1));
  return found == kTypes.end() ? std::nullopt : std::optional(ElementType{found->second, lanes});
}

std::string ThreadIndex::ValueOf(const std::string& name) const {
  const auto bound = bindings_.find(name);
  return bound != bindings_.end() ? bound->second : source_.ValueOf(name);
}

std::string ThreadIndex::ConstantOf(const std::string& expression) const {
  for (const std::string& value : {expression, DefinitionOf(expression)}) {
    if (value == "true" || value == "false") return value;
  }
  try {
    return std::to_string(Expression::Parse(OverThreads(expression, "x", 4)).EvaluateInteger({}));
  } catch (const std::invalid_argument&) {
    return "";
  }
}

// An expression of the kernel's, with constants and local variables replaced, over B, T and D (block number, thread
// number and block size along an axis); "" if it has other names.
std::string ThreadIndex::OverThreads(const std::string& expression, const char* axis, int depth) const {
  const LexedSource lexed = Lex(expression);
  std::string text;
  for (size_t i = 0; i < lexed.tokens.size(); ++i) {
    const Token& token = lexed.tokens[i];
    const auto next = [&](size_t by, std::string_view is) {
      return i + by < lexed.tokens.size() && lexed.tokens[i + by].text == is;
    };
    if (token.Is("(") && next(2, ")") && ElementTypeOf(std::string(lexed.tokens[i + 1].text))) {
      i += 2;  // a cast
    } else if (token.kind == Token::Kind::kNumber) {
      text += token.text.substr(0, token.text.find_first_of("uUlL"));
    } else if (token.kind != Token::Kind::kIdentifier) {
      text += token.text;
    } else if (next(1, ".")) {
      if (!next(2, axis)) return "";
      const char letter = token.Is("blockIdx") ? 'B' : token.Is("threadIdx") ? 'T' : token.Is("blockDim") ? 'D' : 0;
      if (letter == 0) return "";
      text += letter;
      i += 2;
    } else {
      std::string value = ValueOf(std::string(token.text));
      if (value.empty()) value = DefinitionOf(std::string(token.text));
      if (value.empty() || depth == 0) return "";
      value = OverThreads(value, axis, depth - 1);
      if (value.empty()) return "";
      text += "(" + value + ")";
    }
  }
  return text;
}

// The expression of `int name = ...;` in the kernel, else anywhere; "" without one.
std::string ThreadIndex::DefinitionOf(const std::string& name) const {
  const SourceReader& tokens = source_.tokens();
  const std::pair<size_t, size_t> places[] = {{function_.body, function_.end}, {0, tokens.size()}};
  for (const auto& [begin, end] : places) {
    for (size_t i = begin; i < end; ++i) {
      const bool defined =
          tokens.At(i).Is(name) && tokens.At(i + 1).Is("=") && tokens.At(i - 1).kind == Token::Kind::kIdentifier;
      if (defined) return source_.TextOf(i + 2, tokens.SkipToSemicolon(i, end) - 1);
    }
  }
  return "";
}

std::optional<ThreadIndex::Step> ThreadIndex::StepAlong(const char* axis, int64_t threads) const {
  const SourceReader& tokens = source_.tokens();
  for (size_t i = function_.body; i < function_.end; ++i) {
    if (!tokens.At(i).Is("=")) continue;
    const size_t end = tokens.SkipToSemicolon(i, function_.end) - 1;
    const std::string text = OverThreads(source_.TextOf(i + 1, end), axis, 4);
    if (text.find('B') == std::string::npos || text.find('T') == std::string::npos) continue;
    try {
      const Expression index = Expression::Parse(text);
      const auto at = [&](int64_t b, int64_t t) { return index.EvaluateInteger({{"B", b}, {"T", t}, {"D", threads}}); };
      const Step step = {at(2, 1) - at(1, 1), at(1, 2) - at(1, 1), text.find('D') != std::string::npos,
                         std::string(tokens.At(i - 1).text)};
      if (step.block > 0 && step.thread > 0 && step.block % step.thread == 0) return step;
    } catch (const std::invalid_argument&) {
      continue;
    }
  }
  return std::nullopt;
}

int64_t ThreadIndex::Bounds() const {
  const SourceReader& tokens = source_.tokens();
  for (size_t i = function_.begin; i < function_.body; ++i) {
    if (!tokens.At(i).Is("__launch_bounds__")) continue;
    const std::string name(tokens.At(i + 2).text), value = ValueOf(name);
    if (const int64_t bound = std::atoll((value.empty() ? name : value).c_str()); bound > 0) return bound;
  }
  return 256;
}

}  // namespace kgrpo::evaluator
