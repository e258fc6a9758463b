#include "expression/expression.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

namespace kgrpo::expression {
namespace {

// Replaces muParser's functions and constants with those of kFunctions.
void DefineFunctions(mu::Parser* parser) {
  using One = double (*)(double);
  using Many = double (*)(const double*, int);
  parser->ClearFun();
  parser->ClearConst();
  // Each returns NaN if an argument is one, wherever it stands: such a reward is then refused.
  parser->DefineFun("min", Many{[](const double* all, int count) {
                      return std::accumulate(all, all + count, all[0], [](double a, double b) {
                        return std::isnan(a + b) ? a + b : std::min(a, b);
                      });
                    }});
  parser->DefineFun("max", Many{[](const double* all, int count) {
                      return std::accumulate(all, all + count, all[0], [](double a, double b) {
                        return std::isnan(a + b) ? a + b : std::max(a, b);
                      });
                    }});
  parser->DefineFun(
      "clamp", +[](double value, double low, double high) { return std::min(std::max(value, low), high); });
  parser->DefineFun("abs", One{std::fabs});
  parser->DefineFun("sqrt", One{std::sqrt});
  parser->DefineFun("exp", One{std::exp});
  parser->DefineFun("tanh", One{std::tanh});
  parser->DefineFun("ln", One{std::log});
  parser->DefineFun("log2", One{std::log2});
  parser->DefineFun("log10", One{std::log10});
  parser->DefineInfixOprt("!", [](double value) { return value == 0 ? 1.0 : 0.0; });
}

std::string Words(const mu::Parser::exception_type& error) {
  const std::string token = "\"" + error.GetToken() + "\"";
  switch (error.GetCode()) {
    case mu::ecUNEXPECTED_EOF: return "it ends where a value is expected";
    case mu::ecUNEXPECTED_OPERATOR:
    case mu::ecUNEXPECTED_ARG_SEP:
      return (error.GetToken().empty() ? "something" : token) + " stands where a value is expected";
    case mu::ecUNEXPECTED_VAL:
    case mu::ecUNEXPECTED_VAR:
    case mu::ecUNEXPECTED_FUN:
    case mu::ecUNEXPECTED_STR: return "an operator is missing before " + token;
    case mu::ecUNASSIGNABLE_TOKEN: return token + " means nothing in an expression";
    case mu::ecUNEXPECTED_PARENS: return "the bracket " + token + " is not expected there";
    case mu::ecMISSING_PARENS: return "this bracket is not closed";
    case mu::ecUNTERMINATED_STRING: return "a text that begins with \" is not closed";
    case mu::ecTOO_MANY_PARAMS: return "too many arguments of " + token;
    case mu::ecTOO_FEW_PARAMS: return "too few arguments of " + token;
    case mu::ecSTRING_EXPECTED: return "metric takes a name in quotes: metric(\"registers\")";
    case mu::ecVAL_EXPECTED:
    case mu::ecSTR_RESULT: return "a number is expected, and not a text";
    case mu::ecMISPLACED_COLON: return "\":\" without a \"?\" before it";
    case mu::ecMISSING_ELSE_CLAUSE: return "\"a ? b\" without \": c\"";
    default: {
      std::string message = error.GetMsg();
      if (!message.empty()) message[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(message[0])));
      if (message.ends_with('.')) message.pop_back();
      return message;
    }
  }
}

std::string Known(const char* what, std::span<const Named> all, std::span<const Named> further = {}) {
  std::string known;
  for (const std::span<const Named> part : {all, further}) {
    for (const Named& one : part) known += (known.empty() ? "" : ", ") + std::string(one.name);
  }
  return std::string(what) + " are " + known;
}

}  // namespace

std::string Listed(const char* heading, std::span<const Named> all) {
  std::string text = *heading == '\0' ? "" : std::string("\n") + heading + "\n";
  for (const Named& one : all) {
    const std::string name = one.name;
    text += "  " + name + std::string(name.size() < 32 ? 32 - name.size() : 1, ' ') + one.meaning + "\n";
  }
  return text;
}

Expression::Expression(std::string option, std::string text, std::span<const Named> variables,
                       std::span<const Named> further, void (*define)(mu::Parser* parser))
    : option_(std::move(option)),
      text_(std::move(text)),
      variables_(variables),
      further_(further),
      values_(variables.size()) {
  try {
    for (size_t i = 0; i < variables.size(); ++i) parser_.DefineVar(variables[i].name, &values_[i]);
    DefineFunctions(&parser_);
    if (define != nullptr) define(&parser_);
    parser_.SetExpr(text_);
    CheckNames();
    // muParser finds some mistakes only when it evaluates. An Error of a function without its data is not a mistake.
    try {
      parser_.Eval();
    } catch (const Error&) {
    }
  } catch (const mu::Parser::exception_type& error) {
    const bool open = error.GetCode() == mu::ecMISSING_PARENS;
    Refuse(open ? OpenBracket() : static_cast<size_t>(std::max(error.GetPos(), 0)), Words(error));
  }
}

double Expression::Value(std::span<const double> values) {
  const std::lock_guard lock(mutex_);
  std::ranges::copy(values, values_.begin());
  try {
    return parser_.Eval();
  } catch (const mu::Parser::exception_type& error) {
    throw Error(KGRPO_ERROR_INVALID, "options." + option_ + ": " + Words(error));
  }
}

std::string Expression::NotFinite(std::span<const double> values) {
  const std::lock_guard lock(mutex_);
  std::string from;
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (parser_.GetUsedVar().contains(variables_[i].name))
      from += (from.empty() ? "" : ", ") + std::string(variables_[i].name) + " = " + nlohmann::json(values[i]).dump();
  }
  return " is no finite number" + (from.empty() ? "" : " where " + from) + ": " + text_;
}

void Expression::Refuse(size_t at, const std::string& why) const {
  throw Error(KGRPO_ERROR_INVALID,
              "options." + option_ + ": at character " + std::to_string(at + 1) + " of \"" + text_ + "\": " + why);
}

// muParser's message for an unknown name speaks of tokens. It would also execute an assignment, and take the last of
// several values ("-0,5" is 5).
void Expression::CheckNames() const {
  std::vector<bool> calls;  // for each open bracket, whether it holds the arguments of a function
  const auto is_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (size_t at = 0, end; at < text_.size(); at = end) {
    end = at + 1;
    if (text_[at] == '"') {
      end = std::min(text_.find('"', end), text_.size() - 1) + 1;
    } else if (std::isdigit(static_cast<unsigned char>(text_[at])) != 0) {
      while (end < text_.size() && (is_name(text_[end]) || text_[end] == '.')) ++end;  // 1e3
    } else if (text_[at] == '=' || text_[at] == '<' || text_[at] == '>' || text_[at] == '!') {
      if (end < text_.size() && text_[end] == '=') {
        ++end;
      } else if (text_[at] == '=') {
        Refuse(at, "= would assign; write == to compare");
      }
    } else if (text_[at] == '(') {
      calls.push_back(at > 0 && is_name(text_[at - 1]));
    } else if (text_[at] == ')' && !calls.empty()) {
      calls.pop_back();
    } else if (text_[at] == ',' && (calls.empty() || !calls.back())) {
      Refuse(at, "\",\" separates the arguments of a function, as in min(a, b); a decimal number is written 0.5");
    } else if (is_name(text_[at])) {
      while (end < text_.size() && is_name(text_[end])) ++end;
      CheckName(at, text_.substr(at, end - at), end, text_.find_first_not_of(" \t\n", end));
    }
  }
}

// Returns the position of the last bracket that is not closed, or the end of the text.
size_t Expression::OpenBracket() const {
  std::vector<size_t> open;
  for (size_t at = 0; at < text_.size(); ++at) {
    if (text_[at] == '"') at = std::min(text_.find('"', at + 1), text_.size() - 1);
    if (text_[at] == '(') open.push_back(at);
    if (text_[at] == ')' && !open.empty()) open.pop_back();
  }
  return open.empty() ? text_.size() : open.back();
}

// `end`: the position after the name. `next`: that of the first character from there on that is not white space, or
// npos.
void Expression::CheckName(size_t at, const std::string& name, size_t end, size_t next) const {
  for (const auto& [word, sign] : {std::pair("and", "&&"), std::pair("or", "||"), std::pair("not", "!")}) {
    if (name == word) Refuse(at, name + " is no operator: use " + sign);
  }
  const bool called = next != std::string::npos && text_[next] == '(', function = parser_.GetFunDef().contains(name);
  if (called && !function)
    Refuse(at, "there is no function \"" + name + "\"; " + Known("functions", kFunctions, further_));
  if (called && next != end) Refuse(at, "no space may stand between " + name + " and its bracket");
  if (called) return;
  if (function) Refuse(at, name + " is a function: write " + name + "(...)");
  const bool known = std::ranges::any_of(variables_, [&](const Named& one) { return name == one.name; });
  if (!known) Refuse(at, "there is no variable \"" + name + "\"; " + Known("variables", variables_));
}

}  // namespace kgrpo::expression
