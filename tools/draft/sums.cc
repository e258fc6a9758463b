#include "draft/sums.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "judge/problem/expression.h"

namespace kgrpo::evaluator {
namespace {

using Kind = Token::Kind;

constexpr std::string_view kHalfTypes[] = {"half",          "__half",         "half2",      "__half2",
                                           "__nv_bfloat16", "__nv_bfloat162", "nv_bfloat16"};
constexpr std::string_view kHalfArithmetic[] = {"__hadd", "__hsub", "__hmul", "__hfma", "__hdiv"};

bool IsHalfType(std::string_view word) {
  return std::find(std::begin(kHalfTypes), std::end(kHalfTypes), word) != std::end(kHalfTypes);
}

// A floating-point variable or array.
struct Variable {
  bool half = false, pointer = false;
};

// What a source says of its arithmetic, word by word; macros are read too.
struct Arithmetic {
  bool accumulates = false;  // `sum += x` of a floating variable
  bool exchanges = false;    // between lanes
  bool in_half = false;
  const std::map<std::string, std::string>& bindings;  // of template parameters

  void Read(std::string_view code) {
    const LexedSource lexed = Lex(code);
    std::map<std::string_view, Variable> variables;
    for (size_t i = 0; i < lexed.tokens.size(); ++i) {
      const Token& token = lexed.tokens[i];
      const auto at = [&](size_t next) { return i + next < lexed.tokens.size() ? lexed.tokens[i + next] : Token(); };
      if (token.kind == Kind::kDirective && token.text.find("define") != std::string_view::npos)
        Read(token.text.substr(1));
      if (token.kind == Kind::kString && token.text.find(".f16.f16.f16.f16") != std::string_view::npos) in_half = true;
      if (token.kind != Kind::kIdentifier) continue;
      for (const std::string_view function : kHalfArithmetic) in_half = in_half || token.text.starts_with(function);
      exchanges = exchanges || token.text.starts_with("__shfl_") || token.text.starts_with("__reduce_");
      const auto bound = bindings.find(std::string(token.text));
      const std::string_view type = bound == bindings.end() ? token.text : std::string_view(bound->second);
      const bool half = IsHalfType(type);
      if (half || type == "float" || type == "double" || type == "floatX") {
        const bool pointer = at(1).Is("*");
        const size_t name = at(pointer ? 2 : 1).Is("__restrict__") ? 3 : pointer ? 2 : 1;
        if (at(name).kind == Kind::kIdentifier) variables[at(name).text] = {half, pointer};
        continue;
      }
      if (token.text == "accumulator") {  // wmma::fragment<wmma::accumulator, 16, 16, 16, half>
        size_t next = 1;
        while (next < 12 && !at(next).Is(">")) ++next;
        in_half = in_half || IsHalfType(at(next - 1).text);
      }
      const auto variable = variables.find(token.text);
      if (variable == variables.end()) continue;
      size_t next = 1;
      while (at(next).Is("[")) {  // sums[i][j]
        for (int depth = 0; i + next < lexed.tokens.size(); ++next) {
          if (at(next).Is("[")) ++depth;
          if (at(next).Is("]") && --depth == 0) break;
        }
        ++next;
      }
      const bool moves = variable->second.pointer && next == 1;  // `a += 16` of a pointer
      if (moves || !at(next).Is("+") || !at(next + 1).Is("=")) continue;
      accumulates = true;
      in_half = in_half || variable->second.half;
    }
  }
};

Arithmetic ArithmeticOf(const Draft& draft, const std::string& code) {
  Arithmetic arithmetic = {.bindings = draft.bindings};
  arithmetic.Read(code);
  return arithmetic;
}

std::string Product(const std::vector<std::string>& factors) {
  std::string text;
  for (const std::string& factor : factors) {
    const bool sum = factor.find_first_of("+-/") != std::string::npos && factor.find('(') == std::string::npos;
    text += (text.empty() ? "" : "*") + (sum ? "(" + factor + ")" : factor);
  }
  return text;
}

// The shape with each product of sizes taken apart: "m", "k" of [m*k].
std::vector<std::string> FactorsOf(const DraftParameter& parameter) {
  std::vector<std::string> factors;
  for (const std::string& dimension : parameter.shape) {
    const bool product = dimension.find_first_of("+-/(") == std::string::npos;
    for (size_t begin = 0; begin <= dimension.size();) {
      const size_t end = product ? std::min(dimension.find('*', begin), dimension.size()) : dimension.size();
      factors.push_back(dimension.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return factors;
}

bool IsWritten(const DraftParameter& parameter) {
  return parameter.role == Role::kOutput || parameter.role == Role::kInout;
}

}  // namespace

std::string TermsOf(const Draft& draft, const std::string& code) {
  std::vector<std::string> outputs;      // dimensions
  std::set<std::string> gathered, kept;  // dimensions that integers of an input index; of floating inputs
  bool floating = false;
  std::string last;
  for (const DraftParameter& parameter : draft.parameters) {
    if (!parameter.source.pointer) continue;
    const std::vector<std::string> factors = FactorsOf(parameter);
    if (IsWritten(parameter)) {
      outputs.insert(outputs.end(), factors.begin(), factors.end());
      if (last.empty() || last == "1") last = factors.back();
    } else if (Info(parameter.dtype).is_floating) {
      floating = true;
      kept.insert(factors.begin(), factors.end());
    }
    if (parameter.high.ends_with("-1")) gathered.insert(parameter.high.substr(0, parameter.high.size() - 2));
  }
  std::erase(outputs, "1");
  const auto in_outputs = [&](const std::string& dimension) {
    return dimension == "1" || std::find(outputs.begin(), outputs.end(), dimension) != outputs.end();
  };
  // A dimension of the outputs that inputs lack counts the groups that are reduced.
  const bool grouped = !outputs.empty() && std::none_of(outputs.begin(), outputs.end(),
                                                        [&](const std::string& one) { return kept.contains(one); });
  Bindings timing(draft.sizes.begin(), draft.sizes.end());
  std::string terms = "1";
  double most = 1;
  for (const DraftParameter& parameter : draft.parameters) {
    // Integers beside floating inputs are indices.
    if (!parameter.source.pointer || IsWritten(parameter) || (floating && !Info(parameter.dtype).is_floating)) continue;
    std::vector<std::string> reduced;
    for (const std::string& dimension : FactorsOf(parameter)) {
      if (!in_outputs(dimension) && !gathered.contains(dimension)) reduced.push_back(dimension);
    }
    if (reduced.empty()) continue;
    std::string text = Product(reduced);
    if (grouped) text = "ceil_div(" + text + ", " + Product(outputs) + ")";
    const double value = Expression::Parse(text).Evaluate(timing);
    if (value > most) terms = text, most = value;
  }
  if (terms != "1") return terms;
  const Arithmetic arithmetic = ArithmeticOf(draft, code);
  return (arithmetic.accumulates || arithmetic.exchanges) && !last.empty() ? last : "1";
}

std::optional<DType> LowPrecisionOf(const Draft& draft, const std::string& code) {
  std::optional<DType> low;
  for (const DraftParameter& parameter : draft.parameters) {
    const bool is_low = parameter.dtype == DType::kFloat16 || parameter.dtype == DType::kBfloat16;
    if (parameter.source.pointer && is_low && low != DType::kFloat16) low = parameter.dtype;
  }
  return low && ArithmeticOf(draft, code).in_half ? low : std::nullopt;
}

}  // namespace kgrpo::evaluator
