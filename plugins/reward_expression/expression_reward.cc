#include "reward_expression/expression_reward.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>
#include <kgrpo/support/closest.h>
#include <muParser.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace kgrpo::reward {
namespace {

constexpr std::string_view kSchema = R"json({
  "$schema": "http://json-schema.org/draft-07/schema#",
  "title": "reward_expression",
  "description": "",
  "type": "object",
  "additionalProperties": false,
  "required": ["score"],
  "properties": {
    "score": {"title": "Score of a kernel", "type": "string", "minLength": 1,
      "description": "Reward of a round with a kernel.",
      "examples": ["compiled == 0 ? -1 : correct == 0 ? -0.5 : 0.3 + log2(min(speedup, 8))"]},
    "no_kernel": {"title": "Score of a round without a kernel", "type": "string", "minLength": 1,
      "default": "not_applicable ? 0 : -0.5",
      "description": "Reward of a round without a kernel."}
  }
})json";

struct Named {
  const char *name, *meaning;
};

// Variables of expressions, in the order of their values.
constexpr std::array kVariables = {
    Named{"compiled", "1 or 0"},
    Named{"correct", "1 or 0: compiled, and correct in everything that was checked"},
    Named{"speedup", "over the reference; 0 unless correct"},
    Named{"seconds", "the kernel's time; 0 unless correct"},
    Named{"baseline_seconds", "the reference's time"},
    Named{"previous_speedup", "the speedup of the kernel that the round started from"},
    Named{"best_speedup", "the greatest of the trajectory's earlier rounds; at least 1, the reference's"},
    Named{"unchanged", "1: the coder gave back what it was given"},
    Named{"round", "from 0"},
    Named{"rounds", "how many the trajectory has"},
    Named{"not_applicable", "1: no kernel, since the suggestion does not apply to this one"},
    Named{"unclear", "1: no kernel, since the suggestion names nothing that can be done"},
    Named{"coder_error", "1: no kernel, since the coder refused, was cut off, wrote no code or failed"},
    Named{"policy_error", "1: no kernel, since the policy writes the kernels and its completion contains none"}};

// The functions of expressions. muParser's own set has more, such as an ambiguous `log`.
constexpr std::array kFunctions = {
    Named{"min(a, b, ...), max(a, b, ...)", "the least, the greatest"},
    Named{"clamp(x, low, high)", "x within these bounds"}, Named{"abs(x), sqrt(x), exp(x), tanh(x)", "as in C"},
    Named{"ln(x), log2(x), log10(x)", "logarithms"},
    Named{"metric(\"registers\")", "anything that the evaluator measured of the kernel"}};

constexpr const char* kOperators =
    "Operators: + - * / ^, < <= > >= == !=, && || !, a ? b : c. Truth is 1, falsehood 0.";

// The description in the schema, which `plugins describe` prints.
std::string Description() {
  std::string text = "A reward written in the pipeline file.\n";
  const auto list = [&text](const char* heading, const auto& all) {
    text += std::string("\n") + heading + "\n";
    for (const Named& one : all) {
      const std::string name = one.name;
      text += "  " + name + std::string(name.size() < 32 ? 32 - name.size() : 1, ' ') + one.meaning + "\n";
    }
  };
  list("Variables:", kVariables);
  list("Functions:", kFunctions);
  return text + "\n" + kOperators;
}

// What to do about a score that fails for a kernel that is not correct.
constexpr const char* kGuard = "write correct ? ... : -0.5";

using Values = std::array<double, kVariables.size()>;

// The evaluation that metric() reads while this thread evaluates an expression; null otherwise.
thread_local const kgrpo_evaluation* t_evaluation = nullptr;

struct EvaluationScope {
  explicit EvaluationScope(const kgrpo_evaluation* evaluation) { t_evaluation = evaluation; }
  ~EvaluationScope() { t_evaluation = nullptr; }
  EvaluationScope(const EvaluationScope&) = delete;
  EvaluationScope& operator=(const EvaluationScope&) = delete;
};

double MetricOf(const char* name) {
  std::vector<std::string> reported;
  for (size_t i = 0; t_evaluation != nullptr && i < t_evaluation->metric_count; ++i) {
    if (View(t_evaluation->metrics[i].name) == name) return t_evaluation->metrics[i].value;
    reported.push_back(Copy(t_evaluation->metrics[i].name));
  }
  const std::string closest = Closest(name, reported);
  std::string why = "the evaluator did not report this metric for this kernel" +
                    (closest.empty() ? "" : "; did you mean \"" + closest + "\"?");
  if (t_evaluation == nullptr) {
    why = "the round has no kernel";
  } else if (t_evaluation->correct == 0) {
    why = "the kernel is not correct (" + Copy(t_evaluation->verdict) + "), and has no such metric; " + kGuard;
  }
  throw Error(KGRPO_ERROR_INVALID, std::string("reward_expression: metric(\"") + name + "\"): " + why);
}

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
  parser->DefineFun("metric", MetricOf, /*a_bAllowOpt=*/false);
  parser->DefineInfixOprt("!", [](double value) { return value == 0 ? 1.0 : 0.0; });
}

double SpeedupOf(const kgrpo_evaluation* kernel) {
  return kernel == nullptr || kernel->correct == 0 ? 0 : kernel->speedup;
}

Values ValuesOf(const kgrpo_reward_request& request, const kgrpo_evaluation* kernel, bool unchanged) {
  double best = 1;
  for (uint32_t i = 0; i < request.round; ++i) best = std::max(best, SpeedupOf(request.history[i]));
  const uint32_t outcome = request.answer == nullptr ? uint32_t{KGRPO_CODER_OK} : request.answer->outcome;
  const bool not_applicable = outcome == KGRPO_CODER_NOT_APPLICABLE, unclear = outcome == KGRPO_CODER_UNCLEAR;
  const bool policy_error = outcome == KGRPO_CODER_NO_KERNEL;
  return {kernel != nullptr && kernel->compiled != 0 ? 1.0 : 0.0,
          kernel != nullptr && kernel->correct != 0 ? 1.0 : 0.0,
          SpeedupOf(kernel),
          kernel != nullptr ? kernel->seconds : 0,
          request.baseline != nullptr ? request.baseline->seconds : 0,
          SpeedupOf(request.current),
          best,
          unchanged ? 1.0 : 0.0,
          static_cast<double>(request.round),
          static_cast<double>(request.rounds),
          not_applicable ? 1.0 : 0.0,
          unclear ? 1.0 : 0.0,
          outcome != KGRPO_CODER_OK && !not_applicable && !unclear && !policy_error ? 1.0 : 0.0,
          policy_error ? 1.0 : 0.0};
}

}  // namespace

// One expression, compiled once. muParser binds variables by address and is used by one thread at a time.
class ExpressionReward::Expression {
 public:
  Expression(std::string option, const std::string& text) : option_(std::move(option)), text_(text) {
    try {
      for (size_t i = 0; i < kVariables.size(); ++i) parser_.DefineVar(kVariables[i].name, &values_[i]);
      DefineFunctions(&parser_);
      parser_.SetExpr(text);
      CheckNames();
      Compile();
    } catch (const mu::Parser::exception_type& error) {
      const bool open = error.GetCode() == mu::ecMISSING_PARENS;
      Refuse(open ? OpenBracket() : static_cast<size_t>(std::max(error.GetPos(), 0)), Words(error));
    }
  }

  // Checks every metric("...") against `declared`. Throws if an undeclared name resembles a declared one, and adds the
  // other undeclared names to `unknown`. A declared name that ends in '/' or '.' covers all names that begin with it.
  void CheckMetrics(const std::vector<std::string>& declared, std::set<std::string>* unknown) const {
    for (size_t at = 0; (at = text_.find("metric", at)) != std::string::npos; ++at) {
      if (at > 0 && (std::isalnum(static_cast<unsigned char>(text_[at - 1])) != 0 || text_[at - 1] == '_')) continue;
      const size_t bracket = text_.find_first_not_of(" \t\n", at + std::string_view("metric").size());
      if (bracket == std::string::npos || text_[bracket] != '(') continue;
      const size_t quote = text_.find_first_not_of(" \t\n", bracket + 1);
      if (quote == std::string::npos || text_[quote] != '"') continue;
      const std::string name = text_.substr(quote + 1, text_.find('"', quote + 1) - quote - 1);
      const bool known = std::ranges::any_of(declared, [&](const std::string& one) {
        return name == one || ((one.ends_with('/') || one.ends_with('.')) && name.starts_with(one));
      });
      if (known) continue;
      const std::string closest = Closest(name, declared);
      if (closest.empty()) {
        unknown->insert(name);
      } else {
        Refuse(quote, "no part declares a metric \"" + name + "\"; did you mean \"" + closest + "\"?");
      }
    }
  }

  double Of(const Values& values, const kgrpo_evaluation* kernel) {
    const std::lock_guard lock(mutex_);
    const double result = Evaluate(values, kernel);
    if (std::isfinite(result)) return result;
    throw Error(KGRPO_ERROR_NOT_FINITE, "reward_expression: " + option_ + NotFinite(values));
  }

  // Returns a warning if the value is not a finite number or needs a metric, else an empty string. `when` names the
  // case in the message ("a round without a kernel"), `metrics` how many it has ("none").
  std::string Warning(const Values& values, const char* when, const char* metrics) {
    const std::lock_guard lock(mutex_);
    try {
      if (std::isfinite(Evaluate(values, nullptr))) return "";
    } catch (const Error&) {  // metric() has no kernel to read
      return "options." + option_ + ": reads a metric of " + when + ", which has " + metrics +
             "; where the metric is missing, the run ends";
    }
    return "options." + option_ + ": for " + when + " it" + NotFinite(values) +
           "; such a round gets no score, and ends its trajectory";
  }

 private:
  double Evaluate(const Values& values, const kgrpo_evaluation* kernel) {
    values_ = values;
    const EvaluationScope scope(kernel);
    try {
      return parser_.Eval();
    } catch (const mu::Parser::exception_type& error) {
      throw Error(KGRPO_ERROR_INVALID, "reward_expression: " + option_ + ": " + Words(error));
    }
  }

  std::string NotFinite(const Values& values) {
    std::string from;
    for (size_t i = 0; i < kVariables.size(); ++i) {
      if (parser_.GetUsedVar().contains(kVariables[i].name)) {
        from += (from.empty() ? "" : ", ") + std::string(kVariables[i].name) + " = " + nlohmann::json(values[i]).dump();
      }
    }
    return " is no finite number" + (from.empty() ? "" : " where " + from) + ": " + text_;
  }

  // muParser finds some mistakes only when it evaluates. The error of metric() without a kernel is not a mistake.
  void Compile() {
    try {
      parser_.Eval();
    } catch (const Error&) {
    }
  }

  [[noreturn]] void Refuse(size_t at, const std::string& why) const {
    throw Error(KGRPO_ERROR_INVALID,
                "options." + option_ + ": at character " + std::to_string(at + 1) + " of \"" + text_ + "\": " + why);
  }

  // muParser's message for an unknown name speaks of tokens. It would also execute an assignment, and take the last of
  // several values ("-0,5" is 5).
  void CheckNames() const {
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
  size_t OpenBracket() const {
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
  void CheckName(size_t at, const std::string& name, size_t end, size_t next) const {
    for (const auto& [word, sign] : {std::pair("and", "&&"), std::pair("or", "||"), std::pair("not", "!")}) {
      if (name == word) Refuse(at, name + " is no operator: use " + sign);
    }
    const bool called = next != std::string::npos && text_[next] == '(', function = parser_.GetFunDef().contains(name);
    if (called && !function) Refuse(at, "there is no function \"" + name + "\"; " + Known("functions", kFunctions));
    if (called && next != end) Refuse(at, "no space may stand between " + name + " and its bracket");
    if (called) return;
    if (function) Refuse(at, name + " is a function: write " + name + "(...)");
    const bool known = std::ranges::any_of(kVariables, [&](const Named& one) { return name == one.name; });
    if (!known) Refuse(at, "there is no variable \"" + name + "\"; " + Known("variables", kVariables));
  }

  template <typename All>
  static std::string Known(const char* what, const All& all) {
    std::string known;
    for (const Named& one : all) known += (known.empty() ? "" : ", ") + std::string(one.name);
    return std::string(what) + " are " + known;
  }

  static std::string Words(const mu::Parser::exception_type& error) {
    const std::string token = "\"" + error.GetToken() + "\"";
    switch (error.GetCode()) {
      case mu::ecUNEXPECTED_EOF:
        return "it ends where a value is expected";
      case mu::ecUNEXPECTED_OPERATOR:
      case mu::ecUNEXPECTED_ARG_SEP:
        return (error.GetToken().empty() ? "something" : token) + " stands where a value is expected";
      case mu::ecUNEXPECTED_VAL:
      case mu::ecUNEXPECTED_VAR:
      case mu::ecUNEXPECTED_FUN:
      case mu::ecUNEXPECTED_STR:
        return "an operator is missing before " + token;
      case mu::ecUNASSIGNABLE_TOKEN:
        return token + " means nothing in an expression";
      case mu::ecUNEXPECTED_PARENS:
        return "the bracket " + token + " is not expected there";
      case mu::ecMISSING_PARENS:
        return "this bracket is not closed";
      case mu::ecUNTERMINATED_STRING:
        return "a text that begins with \" is not closed";
      case mu::ecTOO_MANY_PARAMS:
        return "too many arguments of " + token;
      case mu::ecTOO_FEW_PARAMS:
        return "too few arguments of " + token;
      case mu::ecSTRING_EXPECTED:
        return "metric takes a name in quotes: metric(\"registers\")";
      case mu::ecVAL_EXPECTED:
      case mu::ecSTR_RESULT:
        return "a number is expected, and not a text";
      case mu::ecMISPLACED_COLON:
        return "\":\" without a \"?\" before it";
      case mu::ecMISSING_ELSE_CLAUSE:
        return "\"a ? b\" without \": c\"";
      default: {
        std::string message = error.GetMsg();
        if (!message.empty()) message[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(message[0])));
        if (message.ends_with('.')) message.pop_back();
        return message;
      }
    }
  }

  std::string option_, text_;
  std::mutex mutex_;
  Values values_{};
  mu::Parser parser_;
};

std::string_view ExpressionRewardSchema() {
  static const std::string schema = [] {
    auto json = nlohmann::ordered_json::parse(kSchema);
    json["description"] = Description();
    return json.dump();
  }();
  return schema;
}

ExpressionReward::ExpressionReward(std::string_view options) {
  const nlohmann::json json = nlohmann::json::parse(options);
  score_ = std::make_unique<Expression>("score", json.at("score").get<std::string>());
  no_kernel_ = std::make_unique<Expression>("no_kernel", json.at("no_kernel").get<std::string>());
}

ExpressionReward::~ExpressionReward() = default;

double ExpressionReward::Score(const kgrpo_reward_request& request) const {
  const bool unchanged = request.unchanged != 0;
  // An unchanged kernel may not have been evaluated again: the evaluation of the current one then applies.
  const kgrpo_evaluation* kernel = request.candidate;
  if (kernel == nullptr && unchanged) kernel = request.current;
  const Values values = ValuesOf(request, kernel, unchanged);
  return kernel != nullptr ? score_->Of(values, kernel) : no_kernel_->Of(values, nullptr);
}

std::string ExpressionReward::Warning() const {
  kgrpo_evaluation reference{}, wrong{};
  reference.compiled = reference.correct = wrong.compiled = 1;
  reference.seconds = 1e-3;
  reference.speedup = 1;
  kgrpo_reward_request request{};
  request.baseline = request.current = &reference;
  request.rounds = 4;
  std::string warning = score_->Warning(ValuesOf(request, &wrong, false), "a kernel that is not correct", "few");
  wrong.compiled = 0;
  if (warning.empty())
    warning = score_->Warning(ValuesOf(request, &wrong, false), "a kernel that does not compile", "few");
  if (!warning.empty()) return warning + "; " + kGuard;
  return no_kernel_->Warning(ValuesOf(request, nullptr, false), "a round without a kernel", "none");
}

std::set<std::string> ExpressionReward::CheckMetrics(const std::vector<std::string>& declared) const {
  std::set<std::string> unknown;
  score_->CheckMetrics(declared, &unknown);
  no_kernel_->CheckMetrics(declared, &unknown);
  return unknown;
}

double ExpressionReward::Idle(const kgrpo_reward_request& request) const {
  kgrpo_reward_request as_new = request;
  as_new.answer = nullptr;
  return score_->Of(ValuesOf(as_new, request.current, false), request.current);
}

}  // namespace kgrpo::reward
