#include "judge/problem/expression.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace kgrpo::evaluator {

// One operation. `operation` is an operator character, or 'n' number, 's' symbol, 'm' min, 'M' max, 'c' ceil_div, 'q'
// sqrt, '~' unary minus.
struct Expression::Node {
  char operation;
  double number = 0;
  std::string symbol;
  std::vector<std::shared_ptr<const Node>> operands;
};

namespace {

using Node = Expression::Node;
using NodePtr = std::shared_ptr<const Node>;

// A problem's author never needs more nesting or text; a hostile file would overflow the stack.
constexpr int kDeepest = 64;
constexpr size_t kLongest = 4096;

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {}

  NodePtr ParseAll() {
    if (text_.size() > kLongest)
      throw std::invalid_argument("the expression is longer than " + std::to_string(kLongest) + " characters");
    NodePtr root = ParseSum(0);
    SkipSpaces();
    if (position_ != text_.size()) Fail("expected an operator");
    return root;
  }

 private:
  [[noreturn]] void Fail(const std::string& what) {
    std::ostringstream message;
    message << what << " at column " << position_ + 1 << " of \"" << text_ << "\"";
    if (position_ < text_.size()) {
      message << ", found '" << text_[position_] << "'";
    } else {
      message << ", found its end";
    }
    throw std::invalid_argument(message.str());
  }

  void SkipSpaces() {
    while (position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_]))) ++position_;
  }

  char Peek() {
    SkipSpaces();
    return position_ < text_.size() ? text_[position_] : '\0';
  }

  static NodePtr Binary(char operation, NodePtr left, NodePtr right) {
    return std::make_shared<Node>(Node{operation, 0, "", {std::move(left), std::move(right)}});
  }

  NodePtr ParseSum(int depth) {
    NodePtr left = ParseProduct(depth);
    while (Peek() == '+' || Peek() == '-') {
      char operation = text_[position_++];
      left = Binary(operation, left, ParseProduct(depth));
    }
    return left;
  }

  NodePtr ParseProduct(int depth) {
    NodePtr left = ParseUnary(depth);
    while (Peek() == '*' || Peek() == '/' || Peek() == '%') {
      char operation = text_[position_++];
      left = Binary(operation, left, ParseUnary(depth));
    }
    return left;
  }

  NodePtr ParseUnary(int depth) {
    if (depth > kDeepest) Fail("nested too deeply");
    if (Peek() == '-') {
      ++position_;
      return std::make_shared<Node>(Node{'~', 0, "", {ParseUnary(depth + 1)}});
    }
    return ParsePrimary(depth + 1);
  }

  NodePtr ParsePrimary(int depth) {
    char next = Peek();
    if (next == '(') {
      ++position_;
      NodePtr inner = ParseSum(depth);
      Expect(')');
      return inner;
    }
    if (std::isdigit(static_cast<unsigned char>(next)) || next == '.') return ParseNumber();
    if (std::isalpha(static_cast<unsigned char>(next)) || next == '_') return ParseName(depth);
    Fail("expected a number, a symbol or '('");
  }

  void Expect(char wanted) {
    if (Peek() != wanted) Fail(std::string("expected '") + wanted + "'");
    ++position_;
  }

  NodePtr ParseNumber() {
    const char* begin = text_.c_str() + position_;
    char* end = nullptr;
    double value = std::strtod(begin, &end);
    if (end == begin || !std::isfinite(value)) Fail("expected a number");
    position_ += static_cast<size_t>(end - begin);
    return std::make_shared<Node>(Node{'n', value, "", {}});
  }

  NodePtr ParseName(int depth) {
    size_t begin = position_;
    while (position_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[position_])) || text_[position_] == '_')) {
      ++position_;
    }
    std::string name = text_.substr(begin, position_ - begin);
    if (Peek() != '(') return std::make_shared<Node>(Node{'s', 0, name, {}});
    static const std::map<std::string, std::pair<char, size_t>> kFunctions = {
        {"min", {'m', 2}}, {"max", {'M', 2}}, {"ceil_div", {'c', 2}}, {"sqrt", {'q', 1}}};
    auto function = kFunctions.find(name);
    if (function == kFunctions.end()) {
      position_ = begin;
      Fail("unknown function \"" + name + "\" (there are min, max, ceil_div, sqrt)");
    }
    Expect('(');
    Node node{function->second.first, 0, "", {}};
    for (size_t i = 0; i < function->second.second; ++i) {
      if (i > 0) Expect(',');
      node.operands.push_back(ParseSum(depth));
    }
    Expect(')');
    return std::make_shared<Node>(std::move(node));
  }

  const std::string& text_;
  size_t position_ = 0;
};

int64_t Lookup(const Node& node, const Bindings& bindings) {
  auto found = bindings.find(node.symbol);
  if (found == bindings.end()) throw std::invalid_argument("unknown symbol \"" + node.symbol + "\"");
  return found->second;
}

int64_t FloorDivide(int64_t a, int64_t b) {
  if (b == 0) throw std::invalid_argument("division by zero");
  if (a == INT64_MIN && b == -1) throw std::invalid_argument("the value does not fit 64 bits");
  int64_t quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

// a + b, a - b or a * b; throws where 64 bits do not suffice.
int64_t CheckedArithmetic(char operation, int64_t a, int64_t b) {
  int64_t result = 0;
  const bool overflow = operation == '+'   ? __builtin_add_overflow(a, b, &result)
                        : operation == '-' ? __builtin_sub_overflow(a, b, &result)
                                           : __builtin_mul_overflow(a, b, &result);
  if (overflow) throw std::invalid_argument("the value does not fit 64 bits");
  return result;
}

int64_t EvaluateIntegerNode(const Node& node, const Bindings& bindings) {
  switch (node.operation) {
    case 'n':
      if (node.number != std::floor(node.number) || std::abs(node.number) > 9e18) {
        throw std::invalid_argument("a whole number is needed here");
      }
      return static_cast<int64_t>(node.number);
    case 's': return Lookup(node, bindings);
    case 'q': throw std::invalid_argument("sqrt is not a whole number; it is allowed in floating scalars only");
    default: break;
  }
  int64_t a = EvaluateIntegerNode(*node.operands[0], bindings);
  if (node.operation == '~') return CheckedArithmetic('-', 0, a);
  int64_t b = EvaluateIntegerNode(*node.operands[1], bindings);
  switch (node.operation) {
    case '+':
    case '-':
    case '*': return CheckedArithmetic(node.operation, a, b);
    case '/': return FloorDivide(a, b);
    case '%': return a - FloorDivide(a, b) * b;
    case 'm': return std::min(a, b);
    case 'M': return std::max(a, b);
    default: return CheckedArithmetic('-', 0, FloorDivide(CheckedArithmetic('-', 0, a), b));  // ceil_div
  }
}

double EvaluateNode(const Node& node, const Bindings& bindings) {
  if (node.operation == 'n') return node.number;
  if (node.operation == 's') return static_cast<double>(Lookup(node, bindings));
  double a = EvaluateNode(*node.operands[0], bindings);
  if (node.operation == '~') return -a;
  if (node.operation == 'q') return std::sqrt(a);
  double b = EvaluateNode(*node.operands[1], bindings);
  switch (node.operation) {
    case '+': return a + b;
    case '-': return a - b;
    case '*': return a * b;
    case '/': return a / b;
    case '%': return a - std::floor(a / b) * b;
    case 'm': return std::min(a, b);
    case 'M': return std::max(a, b);
    default: return std::ceil(a / b);
  }
}

void CollectSymbols(const Node& node, std::set<std::string>& symbols) {
  if (node.operation == 's') symbols.insert(node.symbol);
  for (const NodePtr& operand : node.operands) CollectSymbols(*operand, symbols);
}

}  // namespace

Expression::Expression(double value) : root_(std::make_shared<Node>(Node{'n', value, "", {}})) {
  std::ostringstream digits;
  digits.precision(17);
  digits << value;
  text_ = digits.str();
}

Expression Expression::Parse(const std::string& text) { return Expression(Parser(text).ParseAll(), text); }

int64_t Expression::EvaluateInteger(const Bindings& bindings) const { return EvaluateIntegerNode(*root_, bindings); }

double Expression::Evaluate(const Bindings& bindings) const { return EvaluateNode(*root_, bindings); }

std::set<std::string> Expression::Symbols() const {
  std::set<std::string> symbols;
  CollectSymbols(*root_, symbols);
  return symbols;
}

}  // namespace kgrpo::evaluator
