// Arithmetic over a problem's size symbols: shapes, scalar values, needed bytes. Written by problem authors in
// problem.yaml ("12*n", "(n + 1) / 2"), parsed by the problem parser, evaluated once a size by the evaluator.
#pragma once

#include <cstdint>  // int64_t
#include <map>      // Bindings
#include <memory>   // the tree
#include <set>      // symbols
#include <string>

namespace kgrpo::evaluator {

// Values of the symbols: one entry of `sizes`.
using Bindings = std::map<std::string, int64_t>;

// A parsed expression. Grammar: sums, differences, products, quotients, remainders, unary minus, parentheses,
// numbers, symbols, min(a, b), max(a, b), ceil_div(a, b), sqrt(a). Immutable; copies share the tree. [any thread]
class Expression {
 public:
  // A constant.
  explicit Expression(double value = 0);

  // Parses `text`. Throws std::invalid_argument that says what was found where (columns from 1).
  static Expression Parse(const std::string& text);

  // The value in whole numbers: / is floor division, decimals and sqrt are refused, overflow is checked.
  // Throws std::invalid_argument (unknown symbol, division by zero, overflow, not a whole number).
  int64_t EvaluateInteger(const Bindings& bindings) const;

  // The value in double precision, where / divides. Throws std::invalid_argument for an unknown symbol.
  double Evaluate(const Bindings& bindings) const;

  // The symbols it mentions.
  std::set<std::string> Symbols() const;

  // The text it was parsed from, or the constant's digits.
  const std::string& text() const { return text_; }

  struct Node;

 private:
  Expression(std::shared_ptr<const Node> root, std::string text) : root_(std::move(root)), text_(std::move(text)) {}

  std::shared_ptr<const Node> root_;
  std::string text_;
};

}  // namespace kgrpo::evaluator
