#include "judge/problem/expression_reader.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>
#include <stdexcept>
#include <utility>

namespace kgrpo::evaluator {
namespace {

// Words that cannot name a parameter in C++.
bool IsReserved(const std::string& name) {
  static const std::set<std::string> kWords = {
      "auto",   "bool",     "break",  "case",   "char",     "class",  "const",    "continue", "default",
      "delete", "do",       "double", "else",   "enum",     "extern", "false",    "float",    "for",
      "goto",   "if",       "inline", "int",    "long",     "new",    "new",      "operator", "return",
      "short",  "signed",   "sizeof", "static", "struct",   "switch", "this",     "true",     "typedef",
      "union",  "unsigned", "using",  "void",   "volatile", "while",  "template", "namespace"};
  return kWords.count(name) > 0;
}

}  // namespace

bool IsIdentifier(const std::string& text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0]))) return false;
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

bool ExpressionReader::Identifier(const YamlNode& node, const std::string& path, std::string& out) {
  std::string text;
  if (!Text(node, path, text)) return false;
  if (!IsIdentifier(text) || IsReserved(text)) {
    Add(node, path, "\"" + text + "\" is not a C identifier");
    return false;
  }
  out = text;
  return true;
}

bool ExpressionReader::ParseExpression(const YamlNode& node, const std::string& path, Expression& out) {
  std::string text;
  if (!Text(node, path, text)) return false;
  try {
    out = Expression::Parse(text);
    return true;
  } catch (const std::invalid_argument& error) {
    Add(node, path, error.what());
    return false;
  }
}

void ExpressionReader::CheckLater(const YamlNode& node, const std::string& path, const Expression& expression,
                                  bool whole, Check check) {
  pending_.push_back({node, path, expression, whole, std::move(check)});
}

std::vector<std::pair<std::string, const Bindings*>> ExpressionReader::NamedSizes() const {
  std::vector<std::pair<std::string, const Bindings*>> sizes;
  for (size_t i = 0; i < problem_.visible.size(); ++i)
    sizes.emplace_back("sizes.visible[" + std::to_string(i) + "]", &problem_.visible[i]);
  for (size_t i = 0; i < problem_.hidden.size(); ++i)
    sizes.emplace_back("sizes.hidden[" + std::to_string(i) + "]", &problem_.hidden[i]);
  const bool several = !problem_.further_timing.empty();
  sizes.emplace_back(several ? "sizes.timing[0]" : "sizes.timing", &problem_.timing);
  for (size_t i = 0; i < problem_.further_timing.size(); ++i)
    sizes.emplace_back("sizes.timing[" + std::to_string(i + 1) + "]", &problem_.further_timing[i]);
  return sizes;
}

void ExpressionReader::CheckExpressions() {
  const std::vector<std::pair<std::string, const Bindings*>> sizes = NamedSizes();
  std::vector<std::string> symbols;
  for (const auto& [symbol, value] : problem_.timing) symbols.push_back(symbol);
  for (const Pending& pending : pending_) {
    bool known = true;
    for (const std::string& symbol : pending.expression.Symbols()) {
      if (problem_.timing.count(symbol) > 0) continue;
      Add(pending.node, pending.path,
          "unknown symbol \"" + symbol + "\": the sizes do not bind it" + DidYouMean(symbol, symbols));
      known = false;
    }
    for (size_t i = 0; known && i < sizes.size(); ++i) {
      const std::set<std::string> used = pending.expression.Symbols();
      const bool bound = std::all_of(used.begin(), used.end(),
                                     [&](const std::string& symbol) { return sizes[i].second->count(symbol) > 0; });
      if (!bound) continue;  // reported with the size
      try {
        std::string wrong;
        if (pending.whole) {
          const int64_t value = pending.expression.EvaluateInteger(*sizes[i].second);
          if (pending.check) wrong = pending.check(value);
        } else if (!std::isfinite(pending.expression.Evaluate(*sizes[i].second))) {
          wrong = "is not finite";
        }
        if (wrong.empty()) continue;
        Add(pending.node, pending.path, wrong + " (with " + sizes[i].first + ")");
      } catch (const std::invalid_argument& error) {
        Add(pending.node, pending.path, std::string(error.what()) + " (with " + sizes[i].first + ")");
      }
      break;
    }
  }
}

}  // namespace kgrpo::evaluator
