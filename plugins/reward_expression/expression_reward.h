// A reward as an expression over a round's results: "correct ? 0.3 + log2(min(speedup, 8)) : -0.5". Used by plugin.cc.
#ifndef KGRPO_PLUGINS_REWARD_EXPRESSION_EXPRESSION_REWARD_H
#define KGRPO_PLUGINS_REWARD_EXPRESSION_EXPRESSION_REWARD_H

#include <kgrpo/reward.h>

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kgrpo::reward {

// JSON Schema of the options, and with it the list of what an expression may name. Static.
std::string_view ExpressionRewardSchema();

class ExpressionReward {
 public:
  // `options` is JSON that satisfies the schema, defaults filled in. Throws KGRPO_ERROR_INVALID where an expression
  // cannot be read, with the place in it.
  explicit ExpressionReward(std::string_view options);
  ~ExpressionReward();

  // Of one round. Throws KGRPO_ERROR_INVALID where the value is no finite number, with what it was computed from, or
  // where a metric is named that the kernel's evaluation has not. [any thread]
  double Score(const kgrpo_reward_request& request) const;

  // Warns of expressions that are not finite if a kernel is not correct, does not compile, or is absent: most of those
  // that are no finite number are so then, which a run meets late. Empty: nothing. [any thread]
  std::string Warning() const;

  // Throws for a metric("...") that is none of the declared ones and looks like one of them: it is misspelt. Returns
  // the other undeclared ones: an evaluator may measure what it did not declare, so they may exist. [any thread]
  std::set<std::string> CheckMetrics(const std::vector<std::string>& declared) const;

  // The score of the current kernel as if it were new work. [any thread]
  double Idle(const kgrpo_reward_request& request) const;

 private:
  class Expression;
  std::unique_ptr<Expression> score_, no_kernel_;
};

}  // namespace kgrpo::reward

#endif  // KGRPO_PLUGINS_REWARD_EXPRESSION_EXPRESSION_REWARD_H
