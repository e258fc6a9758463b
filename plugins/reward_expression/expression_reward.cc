#include "reward_expression/expression_reward.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>
#include <muParser.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>

namespace kgrpo::reward {
namespace {

constexpr std::string_view kSchema = R"json({
  "$schema": "http://json-schema.org/draft-07/schema#",
  "title": "reward_expression",
  "description": "A reward written in the pipeline file. Expressions know + - * / ^, comparisons, && || !, `a ? b : c`, min, max, abs, sqrt, exp, ln, log2, log10, clamp(x, low, high), and metric(\"registers\") for anything that the evaluator measures. Truth is 1, falsehood 0.",
  "type": "object",
  "additionalProperties": false,
  "required": ["score"],
  "properties": {
    "score": {"title": "Score of a kernel", "type": "string", "minLength": 1,
      "description": "Of a round in which the coder wrote a kernel. Variables: compiled, correct, speedup (over the reference; 0 unless correct), seconds and baseline_seconds, previous (the speedup of the kernel that the round started from), best (the greatest speedup of the trajectory's earlier rounds; 1 at first), unchanged (the coder gave back what it was given), round (from 1), rounds. Example: compiled == 0 ? -1 : correct == 0 ? -0.5 : 0.3 + log2(min(speedup, 8))"},
    "no_kernel": {"title": "Score of a round without a kernel", "type": "string", "minLength": 1,
      "default": "not_applicable ? 0 : -0.5",
      "description": "Variables besides round, rounds, previous and best: not_applicable (the suggestion does not apply to this kernel), unclear (it names nothing that can be done), failed (the coder refused, was cut off, or wrote no code)."}
  }
})json";

// What expressions may name, in the order of their values.
constexpr std::array<const char*, 13> kVariables = {
    "compiled",  "correct", "speedup", "seconds",        "baseline_seconds", "previous", "best",
    "unchanged", "round",   "rounds",  "not_applicable", "unclear",          "failed"};
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
  if (t_evaluation != nullptr) {
    for (size_t i = 0; i < t_evaluation->metric_count; ++i) {
      if (View(t_evaluation->metrics[i].name) == name) return t_evaluation->metrics[i].value;
    }
  }
  throw Error(KGRPO_ERROR_INVALID, std::string("reward_expression: metric(\"") + name +
                                       "\"): the evaluator measured no such thing of this kernel");
}

double Clamp(double value, double low, double high) {
  return std::min(std::max(value, low), high);
}

double SpeedupOf(const kgrpo_evaluation* baseline, const kgrpo_evaluation* kernel) {
  if (baseline == nullptr || kernel == nullptr || kernel->correct == 0 || !(kernel->seconds > 0)) return 0;
  return baseline->seconds / kernel->seconds;
}

Values ValuesOf(const kgrpo_reward_request& request, const kgrpo_evaluation* kernel, bool unchanged) {
  double best = 1;
  for (uint32_t i = 0; i < request.round; ++i) best = std::max(best, SpeedupOf(request.baseline, request.history[i]));
  const uint32_t outcome = request.answer == nullptr ? uint32_t{KGRPO_CODER_OK} : request.answer->outcome;
  const bool not_applicable = outcome == KGRPO_CODER_NOT_APPLICABLE, unclear = outcome == KGRPO_CODER_UNCLEAR;
  return {kernel != nullptr && kernel->compiled != 0 ? 1.0 : 0.0,
          kernel != nullptr && kernel->correct != 0 ? 1.0 : 0.0,
          SpeedupOf(request.baseline, kernel),
          kernel != nullptr ? kernel->seconds : 0,
          request.baseline != nullptr ? request.baseline->seconds : 0,
          SpeedupOf(request.baseline, request.current),
          best,
          unchanged ? 1.0 : 0.0,
          static_cast<double>(request.round) + 1,
          static_cast<double>(request.rounds),
          not_applicable ? 1.0 : 0.0,
          unclear ? 1.0 : 0.0,
          outcome != KGRPO_CODER_OK && !not_applicable && !unclear ? 1.0 : 0.0};
}

}  // namespace

// One expression, compiled once. muParser binds variables by address and is used by one thread at a time.
class ExpressionReward::Expression {
 public:
  Expression(std::string option, const std::string& text) : option_(std::move(option)), text_(text) {
    try {
      for (size_t i = 0; i < kVariables.size(); ++i) parser_.DefineVar(kVariables[i], &values_[i]);
      parser_.DefineFun("clamp", Clamp);
      parser_.DefineFun("metric", MetricOf, /*a_bAllowOpt=*/false);
      parser_.SetExpr(text);
      for (const auto& [name, place] : parser_.GetUsedVar()) {
        if (std::ranges::find(kVariables, name) == kVariables.end()) {
          throw Error(KGRPO_ERROR_INVALID,
                      "options." + option_ + ": there is no variable \"" + name + "\"; " + Known());
        }
      }
      Compile();
    } catch (const mu::Parser::exception_type& error) {
      throw Error(KGRPO_ERROR_INVALID, "options." + option_ + ": at character " + std::to_string(error.GetPos() + 1) +
                                           " of \"" + text + "\": " + Lowered(error.GetMsg()));
    }
  }

  double Of(const Values& values, const kgrpo_evaluation* kernel) {
    const std::lock_guard lock(mutex_);
    const double result = Evaluate(values, kernel);
    if (std::isfinite(result)) return result;
    throw Error(KGRPO_ERROR_INVALID, "reward_expression: " + option_ + NotFinite(values));
  }

  // A sentence where it is no finite number. `when`: what the values are of.
  std::string Warning(const Values& values, const char* when) {
    const std::lock_guard lock(mutex_);
    try {
      if (std::isfinite(Evaluate(values, nullptr))) return "";
    } catch (const Error&) {  // metric(), without a kernel
      return "";
    }
    return "options." + option_ + ": for " + when + " it" + NotFinite(values) +
           "; the first such round would end the run";
  }

 private:
  double Evaluate(const Values& values, const kgrpo_evaluation* kernel) {
    values_ = values;
    const EvaluationScope scope(kernel);
    try {
      return parser_.Eval();
    } catch (const mu::Parser::exception_type& error) {
      throw Error(KGRPO_ERROR_INVALID, "reward_expression: " + option_ + ": " + Lowered(error.GetMsg()));
    }
  }

  std::string NotFinite(const Values& values) {
    std::string from;
    for (size_t i = 0; i < kVariables.size(); ++i) {
      if (parser_.GetUsedVar().contains(kVariables[i])) {
        from += (from.empty() ? "" : ", ") + std::string(kVariables[i]) + " = " + nlohmann::json(values[i]).dump();
      }
    }
    return " is no finite number" + (from.empty() ? "" : " where " + from) + ": " + text_;
  }

  // muParser finds some mistakes only when it evaluates; what metric() says without a kernel is none.
  void Compile() {
    try {
      parser_.Eval();
    } catch (const Error&) {
    }
  }

  static std::string Known() {
    std::string known = "known are ";
    for (const char* name : kVariables) known += (name == kVariables.front() ? "" : ", ") + std::string(name);
    return known;
  }

  static std::string Lowered(std::string message) {
    if (!message.empty()) message[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(message[0])));
    if (message.ends_with('.')) message.pop_back();
    return message;
  }

  std::string option_, text_;
  std::mutex mutex_;
  Values values_{};
  mu::Parser parser_;
};

std::string_view ExpressionRewardSchema() {
  return kSchema;
}

ExpressionReward::ExpressionReward(std::string_view options) {
  const nlohmann::json json = nlohmann::json::parse(options);
  score_ = std::make_unique<Expression>("score", json.at("score").get<std::string>());
  no_kernel_ = std::make_unique<Expression>("no_kernel", json.at("no_kernel").get<std::string>());
}

ExpressionReward::~ExpressionReward() = default;

double ExpressionReward::Score(const kgrpo_reward_request& request) const {
  const bool unchanged = request.unchanged != 0;
  // An unchanged kernel may not have been evaluated again: what is known of the current one holds for it.
  const kgrpo_evaluation* kernel = request.candidate;
  if (kernel == nullptr && unchanged) kernel = request.current;
  const Values values = ValuesOf(request, kernel, unchanged);
  return kernel != nullptr ? score_->Of(values, kernel) : no_kernel_->Of(values, nullptr);
}

std::string ExpressionReward::Warning() const {
  kgrpo_evaluation reference{}, wrong{};
  reference.compiled = reference.correct = wrong.compiled = 1;
  reference.seconds = 1e-3;
  kgrpo_reward_request request{};
  request.baseline = request.current = &reference;
  request.rounds = 4;
  std::string warning = score_->Warning(ValuesOf(request, &wrong, false), "a kernel that is not correct");
  wrong.compiled = 0;
  if (warning.empty()) warning = score_->Warning(ValuesOf(request, &wrong, false), "a kernel that does not compile");
  if (!warning.empty()) return warning + "; write correct ? ... : -0.5";
  return no_kernel_->Warning(ValuesOf(request, nullptr, false), "a round without a kernel");
}

double ExpressionReward::Idle(const kgrpo_reward_request& request) const {
  kgrpo_reward_request as_new = request;
  as_new.answer = nullptr;
  return score_->Of(ValuesOf(as_new, request.current, false), request.current);
}

}  // namespace kgrpo::reward
