#include "draft/grid_caps.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <string>

namespace kgrpo::evaluator {
namespace {

constexpr int64_t kLeastCap = 8, kMostCap = int64_t{1} << 24;

// The integer that a token stands for, or 0.
int64_t ValueOf(const CudaSource& source, const Token& token) {
  std::string text(token.text);
  if (token.kind == Token::Kind::kIdentifier) text = source.ValueOf(text);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() &&
                     text.find_first_not_of("uUlL", static_cast<size_t>(end - text.data())) == std::string::npos;
  return whole ? value : 0;
}

// Adds constants that are compared or are an argument of min.
void AddCaps(const CudaSource& source, const std::vector<Token>& tokens, GridCaps* caps) {
  constexpr size_t kMost = 2;
  const auto is_one_of = [](const Token& token, std::initializer_list<const char*> texts) {
    return std::any_of(texts.begin(), texts.end(), [&](const char* text) { return token.Is(text); });
  };
  std::vector<bool> of_min;  // by open bracket
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].Is("(")) of_min.push_back(i > 0 && is_one_of(tokens[i - 1], {"min", "MIN"}));
    if (tokens[i].Is(")") && !of_min.empty()) of_min.pop_back();
    const int64_t value = ValueOf(source, tokens[i]);
    if (value < kLeastCap || value > kMostCap) continue;
    const bool argument = !of_min.empty() && of_min.back() && i > 0 && i + 1 < tokens.size() &&
                          is_one_of(tokens[i - 1], {"(", ","}) && is_one_of(tokens[i + 1], {")", ","});
    const bool compared = (i > 0 && is_one_of(tokens[i - 1], {"<", ">"})) ||
                          (i > 1 && tokens[i - 1].Is("=") && is_one_of(tokens[i - 2], {"<", ">"})) ||
                          (i + 1 < tokens.size() && is_one_of(tokens[i + 1], {"<", ">"}));
    const bool known = std::find(caps->blocks.begin(), caps->blocks.end(), value) != caps->blocks.end();
    if ((argument || compared) && !known && caps->blocks.size() < kMost) caps->blocks.push_back(value);
  }
}

}  // namespace

GridCaps FindGridCaps(const CudaSource& source, const Draft& draft) {
  GridCaps caps;
  if (draft.function->kernel) {
    AddCaps(source, Lex(draft.grid).tokens, &caps);
    const LexedSource block = Lex(draft.block);
    if (!block.tokens.empty()) caps.threads = std::max<int64_t>(1, ValueOf(source, block.tokens.front()));
    return caps;
  }
  std::vector<Token> tokens;
  for (size_t i = draft.function->body; i < draft.function->end; ++i) tokens.push_back(source.tokens().At(i));
  AddCaps(source, tokens, &caps);
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!tokens[i].Is("<<<")) continue;
    int depth = 0;
    size_t comma = i + 1;
    while (comma < tokens.size() && !tokens[comma].Is(">>>") && (depth > 0 || !tokens[comma].Is(","))) {
      depth += tokens[comma].Is("(") ? 1 : tokens[comma].Is(")") ? -1 : 0;
      ++comma;
    }
    if (comma + 1 < tokens.size()) caps.threads = std::max<int64_t>(1, ValueOf(source, tokens[comma + 1]));
    break;
  }
  return caps;
}

}  // namespace kgrpo::evaluator
