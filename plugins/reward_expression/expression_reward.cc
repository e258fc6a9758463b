#include "reward_expression/expression_reward.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>
#include <kgrpo/support/closest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "expression/expression.h"

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

using expression::Named;

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

constexpr std::array kMetric = {Named{"metric(\"registers\")", "anything that the evaluator measured of the kernel"}};

// The description in the schema, which `plugins describe` prints.
std::string Description() {
  return "A reward written in the pipeline file.\n" + expression::Listed("Variables:", kVariables) +
         expression::Listed("Functions:", expression::kFunctions) + expression::Listed("", kMetric) + "\n" +
         expression::kOperators;
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

class ExpressionReward::Expression : public expression::Expression {
 public:
  Expression(const std::string& option, const std::string& text)
      : expression::Expression(option, text, kVariables, kMetric, [](mu::Parser* parser) {
          parser->DefineFun("metric", MetricOf, /*a_bAllowOpt=*/false);
        }) {}

  // Checks every metric("...") against `declared`. Throws if an undeclared name resembles a declared one, and adds the
  // other undeclared names to `unknown`. A declared name that ends in '/' or '.' covers all names that begin with it.
  void CheckMetrics(const std::vector<std::string>& declared, std::set<std::string>* unknown) const {
    for (size_t at = 0; (at = text().find("metric", at)) != std::string::npos; ++at) {
      if (at > 0 && (std::isalnum(static_cast<unsigned char>(text()[at - 1])) != 0 || text()[at - 1] == '_')) continue;
      const size_t bracket = text().find_first_not_of(" \t\n", at + std::string_view("metric").size());
      if (bracket == std::string::npos || text()[bracket] != '(') continue;
      const size_t quote = text().find_first_not_of(" \t\n", bracket + 1);
      if (quote == std::string::npos || text()[quote] != '"') continue;
      const std::string name = text().substr(quote + 1, text().find('"', quote + 1) - quote - 1);
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
    const EvaluationScope scope(kernel);
    const double result = Value(values);
    if (std::isfinite(result)) return result;
    throw Error(KGRPO_ERROR_NOT_FINITE, "reward_expression: " + option() + NotFinite(values));
  }

  // Returns a warning if the value is not a finite number or needs a metric, else an empty string. `when` names the
  // case in the message ("a round without a kernel"), `metrics` how many it has ("none").
  std::string Warning(const Values& values, const char* when, const char* metrics) {
    try {
      const EvaluationScope scope(nullptr);
      if (std::isfinite(Value(values))) return "";
    } catch (const Error&) {  // metric() has no kernel to read
      return "options." + option() + ": reads a metric of " + when + ", which has " + metrics +
             "; where the metric is missing, the run ends";
    }
    return "options." + option() + ": for " + when + " it" + NotFinite(values) +
           "; such a round gets no score, and ends its trajectory";
  }
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
  // Trainers divide differences by their deviation plus 1e-4, as TRL does.
  constexpr double kSmall = 1e-2;
  if (warning.empty()) {
    kgrpo_evaluation faster = reference;
    faster.seconds /= 2;
    faster.speedup = 2;
    try {
      const double gain = std::abs(score_->Of(ValuesOf(request, &faster, false), &faster) -
                                   score_->Of(ValuesOf(request, &reference, false), &reference));
      if (gain > 0 && gain < kSmall)
        return "options.score: a kernel twice as fast as one of 1 ms earns only " + nlohmann::json(gain).dump() +
               " more. trainer_grpo adds 1e-4 to what it divides differences by, so it would learn little from such "
               "rewards: multiply the score";
    } catch (const Error&) {  // it reads a metric
    }
  }
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
