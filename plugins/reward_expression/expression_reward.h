// A reward as an expression over a round's results: "correct ? 0.3 + log2(min(speedup, 8)) : -0.5". Used by plugin.cc.
#pragma once

#include <kgrpo/reward.h>

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kgrpo::reward {

// JSON Schema of the options. Its description lists the variables, functions and operators of an expression. Static.
std::string_view ExpressionRewardSchema();

class ExpressionReward {
 public:
  // `options` is JSON that satisfies the schema, defaults filled in. Throws KGRPO_ERROR_INVALID, naming the position,
  // if an expression cannot be parsed.
  explicit ExpressionReward(std::string_view options);
  ~ExpressionReward();

  // Returns the score of one round. Throws KGRPO_ERROR_NOT_FINITE if the value is not finite (the message lists the
  // variables used), KGRPO_ERROR_INVALID if the kernel's evaluation lacks a metric that the expression names.
  // [any thread]
  double Score(const kgrpo_reward_request& request) const;

  // Returns a warning if an expression is not finite for a kernel that is not correct, does not compile, or is absent;
  // else an empty string. Most expressions that fail do so in these cases, which a run may meet late. [any thread]
  std::string Warning() const;

  // Throws if a metric("...") is undeclared but resembles a declared name: it is probably misspelt. Returns the other
  // undeclared names, which may exist: an evaluator may measure metrics that it did not declare. [any thread]
  std::set<std::string> CheckMetrics(const std::vector<std::string>& declared) const;

  // The score of the current kernel as if it were new work. [any thread]
  double Idle(const kgrpo_reward_request& request) const;

 private:
  class Expression;
  std::unique_ptr<Expression> score_, no_kernel_;
};

}  // namespace kgrpo::reward
