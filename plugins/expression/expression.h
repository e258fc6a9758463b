// expression.h - a formula that stands in a pipeline file, evaluated by muParser: a reward, or an advantage. Mistakes
// name their place in the text. Used by reward_expression and trainer_grpo.
#pragma once
#include <muParser.h>

#include <array>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace kgrpo::expression {

struct Named {
  const char *name, *meaning;
};

// The functions of expressions. muParser's own set has more, such as an ambiguous `log`.
inline constexpr std::array kFunctions = {Named{"min(a, b, ...), max(a, b, ...)", "the least, the greatest"},
                                          Named{"clamp(x, low, high)", "x within these bounds"},
                                          Named{"abs(x), sqrt(x), exp(x), tanh(x)", "as in C"},
                                          Named{"ln(x), log2(x), log10(x)", "logarithms"}};

inline constexpr const char* kOperators =
    "Operators: + - * / ^, < <= > >= == !=, && || !, a ? b : c. Truth is 1, falsehood 0.";

// "\nVariables:\n  NAME   MEANING\n...": a part of an option's description.
std::string Listed(const char* heading, std::span<const Named> all);

// [any thread]
class Expression {
 public:
  // `option`: the option's name, for messages. `variables`: in the order of the values, static. `further`: functions
  // beyond kFunctions, which `define` adds to the parser. Throws KGRPO_ERROR_INVALID, naming the position, if the text
  // cannot be parsed.
  Expression(std::string option, std::string text, std::span<const Named> variables,
             std::span<const Named> further = {}, void (*define)(mu::Parser* parser) = nullptr);

  // The value, which may not be finite. Throws KGRPO_ERROR_INVALID if it cannot be evaluated.
  double Value(std::span<const double> values);
  // " is no finite number where speedup = 0.0: TEXT", with the variables that it uses.
  std::string NotFinite(std::span<const double> values);

  const std::string& option() const { return option_; }
  const std::string& text() const { return text_; }
  [[noreturn]] void Refuse(size_t at, const std::string& why) const;

 private:
  void CheckNames() const;
  size_t OpenBracket() const;
  void CheckName(size_t at, const std::string& name, size_t end, size_t next) const;

  const std::string option_, text_;
  const std::span<const Named> variables_, further_;
  std::mutex mutex_;
  std::vector<double> values_;
  mu::Parser parser_;
};

}  // namespace kgrpo::expression
