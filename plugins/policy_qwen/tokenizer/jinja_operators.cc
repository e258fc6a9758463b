// The operators of jinja_value.h: Python's + - * / // % ** and comparisons, and Jinja's ~.
#include <cmath>

#include "policy_qwen/tokenizer/jinja_value.h"

namespace kgrpo::jinja {
namespace {

std::string Escaped(const Value& value) {
  static constexpr const char* kEntities[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
  std::string out;
  for (const char c : value.str()) {
    const size_t at = std::string_view("&<>'\"").find(c);
    out += value.safe || at == std::string_view::npos ? std::string(1, c) : kEntities[at];
  }
  return out;
}

Value Repeat(const Value& value, int64_t times) {
  std::string text;
  Json list = Json::array();
  if (times > 0 &&
      (value.text() ? value.str().size() : value.data->size()) > (size_t{1} << 26) / static_cast<size_t>(times)) {
    Fail("a value is too large");
  }
  for (int64_t i = 0; i < times; ++i) {
    value.text() ? (void)(text += value.str()) : (void)list.insert(list.end(), value.data->begin(), value.data->end());
  }
  return value.text() ? Value(std::move(text)) : Value(std::move(list));
}

}  // namespace

Value Operate(char op, const Value& a, const Value& b) {  // ~ + - * / f(loor division) % p(ower)
  if (op == '~') return Str(a) + Str(b);
  a.undefined() ? a.json() : b.undefined() ? b.json() : Json();  // their errors
  if (op == '+' && a.text() && b.text()) {
    Value sum = a.safe || b.safe ? Escaped(a) + Escaped(b) : a.str() + b.str();
    sum.safe = a.safe || b.safe;
    return sum;
  }
  if (op == '+' && a.list() && b.list() && a.tuple == b.tuple) {
    Json items = *a.data;
    items.insert(items.end(), b.data->begin(), b.data->end());
    Value sum = std::move(items);
    sum.tuple = a.tuple;
    return sum;
  }
  if (op == '*' && (a.text() || a.list()) && b.integer()) return Repeat(a, b.Int());
  if (op == '*' && (b.text() || b.list()) && a.integer()) return Repeat(b, a.Int());
  if (!a.number() || !b.number()) Fail(std::string("'") + op + "' is not for " + TypeName(a) + " and " + TypeName(b));
  const double x = a.Double(), y = b.Double();
  if ((op == '/' || op == 'f' || op == '%') && y == 0) Fail("division by zero");
  double real = op == '+' ? x + y : op == '-' ? x - y : op == '*' ? x * y : op == '/' ? x / y : std::floor(x / y);
  if (op == '%') real = x - y * std::floor(x / y);
  if (op == 'p') real = std::pow(x, y);
  if (a.real() || b.real() || op == '/' || (op == 'p' && y < 0)) return real;
  int64_t whole = static_cast<int64_t>(std::abs(real) < 9e15 ? real : 0);  // exact for powers
  const int64_t i = a.Int(), j = b.Int();
  bool overflow = op == 'p' && std::abs(real) >= 9e15;
  if (op == '+') overflow = __builtin_add_overflow(i, j, &whole);
  if (op == '-') overflow = __builtin_sub_overflow(i, j, &whole);
  if (op == '*') overflow = __builtin_mul_overflow(i, j, &whole);
  if ((op == 'f' || op == '%') && j != -1) {
    const bool down = i % j != 0 && (i < 0) != (j < 0);
    whole = op == 'f' ? i / j - (down ? 1 : 0) : i % j + (down ? j : 0);
  }
  if (overflow) Fail("an integer is too large");
  return whole;
}

bool Compare(const std::string& op, const Value& a, const Value& b) {
  if (op == "==" || op == "!=") return Equal(a, b) == (op == "==");
  if (op == "in" || op == "not in") return Contains(b, a) == (op == "in");
  a.undefined() ? a.json() : b.undefined() ? b.json() : Json();  // their errors
  return op == "<" ? Less(a, b) : op == ">" ? Less(b, a) : op == "<=" ? !Less(b, a) : !Less(a, b);
}

}  // namespace kgrpo::jinja
