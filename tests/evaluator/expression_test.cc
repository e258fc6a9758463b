// Expressions of problem.yaml: values, precedence, floor division, and refusals.
#include "judge/problem/expression.h"

#include "test.h"

#include <stdexcept>

namespace kgrpo::evaluator {
namespace {

const Bindings kSizes = {{"n", 10}, {"m", 3}};

TEST(Expression, EvaluatesWholeNumbers) {
  const std::pair<const char*, int64_t> kCases[] = {{"12*n", 120},
                                                    {"n + 2*m", 16},
                                                    {"(n + 2)*m", 36},
                                                    {"n - m - 1", 6},
                                                    {"n/m", 3},
                                                    {"-n/m", -4},
                                                    {"n % m", 1},
                                                    {"-n % m", 2},
                                                    {"--n", 10},
                                                    {"min(n, m)", 3},
                                                    {"max(n, m + 100)", 103},
                                                    {"ceil_div(n, m)", 4},
                                                    {"ceil_div(9, 3)", 3},
                                                    {"n*n*n", 1000},
                                                    {" 7 ", 7}};
  for (const auto& [text, value] : kCases) EXPECT_EQ(Expression::Parse(text).EvaluateInteger(kSizes), value) << text;
}

TEST(Expression, EvaluatesInDoublePrecision) {
  EXPECT_DOUBLE_EQ(Expression::Parse("1/n").Evaluate(kSizes), 0.1);
  EXPECT_DOUBLE_EQ(Expression::Parse("1/sqrt(n + 6)").Evaluate(kSizes), 0.25);
  EXPECT_DOUBLE_EQ(Expression::Parse("2.5e-1*n").Evaluate(kSizes), 2.5);
}

TEST(Expression, NamesItsSymbols) {
  EXPECT_EQ(Expression::Parse("n*(m + k) - n").Symbols(), (std::set<std::string>{"k", "m", "n"}));
}

std::string ParseError(const std::string& text) {
  try {
    Expression::Parse(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "none";
}

TEST(Expression, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(ParseError("n +"), "expected a number, a symbol or '(' at column 4 of \"n +\", found its end");
  EXPECT_EQ(ParseError("(n"), "expected ')' at column 3 of \"(n\", found its end");
  EXPECT_EQ(ParseError("2n"), "expected an operator at column 2 of \"2n\", found 'n'");
  EXPECT_EQ(ParseError("log(n)"),
            "unknown function \"log\" (there are min, max, ceil_div, sqrt) at column 1 of \"log(n)\", found 'l'");
  EXPECT_EQ(ParseError("min(n)"), "expected ',' at column 6 of \"min(n)\", found ')'");
  // Refused, not a stack overflow.
  std::string sum = "1";
  for (int i = 0; i < 200000; ++i) sum += "+1";
  for (const std::string& text : {sum, std::string(1000, '('), std::string(1000, '-')})
    EXPECT_NE(ParseError(text), "none");
}

TEST(Expression, RefusesWhatHasNoWholeValue) {
  for (const char* text :
       {"1/0", "n % 0", "0.5", "sqrt(n)", "9223372036854775807 + n", "n*n*n*n*n*n*n*n*n*n*n*n*n*n*n*n*n*n*n*n", "k"}) {
    EXPECT_THROW(Expression::Parse(text).EvaluateInteger(kSizes), std::invalid_argument) << text;
  }
}

}  // namespace
}  // namespace kgrpo::evaluator
