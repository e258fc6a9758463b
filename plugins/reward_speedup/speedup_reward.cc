#include "reward_speedup/speedup_reward.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

namespace kgrpo::reward {
namespace {

constexpr std::string_view kSchema = R"json({
  "$schema": "http://json-schema.org/draft-07/schema#",
  "title": "reward_speedup",
  "description": "A penalty for kernels that do not compile or are wrong; else a base plus the speedup over the reference kernel.",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "not_compiled": {"title": "Not compiled", "type": "number", "default": -1.0,
      "description": "Paid for a kernel that does not compile."},
    "wrong": {"title": "Wrong", "type": "number", "default": -0.5,
      "description": "Paid for a kernel that compiles but crashes, hangs or computes something else."},
    "correct": {"title": "Correct", "type": "number", "default": 0.3,
      "description": "Paid for every correct kernel; the speedup is added."},
    "speedup_weight": {"title": "Weight of the speedup", "type": "number", "minimum": 0, "default": 1.0,
      "description": "Factor of the transformed speedup."},
    "speedup_cap": {"title": "Cap on the speedup", "type": "number", "minimum": 0, "default": 0,
      "description": "Speedups above it count as it, so that one lucky kernel does not drown the rest; 0 sets no cap."},
    "transform": {"title": "Transform of the speedup", "enum": ["linear", "log"], "default": "linear",
      "description": "linear pays reference time / kernel time; log pays log2(1 + that), which is the same at 0 and 1 and grows slower above."},
    "unchanged": {"title": "Unchanged", "type": "number", "default": 0.0,
      "description": "Paid when the coder's kernel equals the one the round started from, byte for byte, and that one is correct."},
    "no_kernel": {"title": "No kernel from the policy", "type": "number", "default": -1.0,
      "description": "Paid when the policy writes the kernels (coder_direct) and its completion contains no whole kernel."}
  },
  "x-removed": {
    "not_applicable": {"const": 0.0, "description": "a suggestion that does not apply earns 0; reward_expression's no_kernel can pay something else"},
    "unclear": {"const": -0.5, "description": "an unclear suggestion earns -0.5; reward_expression's no_kernel can pay something else"},
    "coder_error": {"const": -0.5, "description": "a failure of the coder earns -0.5; reward_expression's no_kernel can pay something else"}
  }
})json";

constexpr double kNotApplicable = 0, kUnclear = -0.5, kCoderError = -0.5;  // rounds without a kernel

double Speedup(const kgrpo_evaluation& kernel) {
  if (kernel.speedup > 0 && std::isfinite(kernel.speedup)) return kernel.speedup;
  throw Error(KGRPO_ERROR_INVALID, "reward_speedup: the evaluator calls a kernel correct whose speedup is " +
                                       std::to_string(kernel.speedup) + " (" + std::to_string(kernel.seconds) +
                                       " s); it must be above 0");
}

// The reward of a kernel as new work.
RewardParts ScoreKernel(const SpeedupRewardOptions& options, const kgrpo_evaluation& kernel) {
  RewardParts parts;
  if (!kernel.compiled) {
    parts.outcome = options.not_compiled;
  } else if (!kernel.correct) {
    parts.outcome = options.wrong;
  } else {
    double speedup = Speedup(kernel);
    if (options.speedup_cap > 0) speedup = std::min(speedup, options.speedup_cap);
    if (options.transform == SpeedupTransform::kLog) speedup = std::log2(1.0 + speedup);
    parts.correct = options.correct;
    parts.speedup = options.speedup_weight * speedup;
  }
  return parts;
}

const kgrpo_evaluation& Need(const kgrpo_evaluation* evaluation, const char* what) {
  if (evaluation == nullptr) {
    throw Error(KGRPO_ERROR_INVALID, std::string("reward_speedup: the request has no ") + what);
  }
  return *evaluation;
}

RewardParts Outcome(double payment) {
  RewardParts parts;
  parts.outcome = payment;
  return parts;
}

}  // namespace

std::string_view SpeedupRewardSchema() { return kSchema; }

SpeedupRewardOptions ReadSpeedupRewardOptions(std::string_view text) {
  const nlohmann::json json = nlohmann::json::parse(text);
  SpeedupRewardOptions options;
  options.not_compiled = json.at("not_compiled").get<double>();
  options.wrong = json.at("wrong").get<double>();
  options.correct = json.at("correct").get<double>();
  options.speedup_weight = json.at("speedup_weight").get<double>();
  options.speedup_cap = json.at("speedup_cap").get<double>();
  options.transform = json.at("transform") == "log" ? SpeedupTransform::kLog : SpeedupTransform::kLinear;
  options.unchanged = json.at("unchanged").get<double>();
  options.no_kernel = json.at("no_kernel").get<double>();
  return options;
}

RewardParts Score(const SpeedupRewardOptions& options, const kgrpo_reward_request& request) {
  if (request.answer != nullptr) {
    switch (request.answer->outcome) {
      case KGRPO_CODER_OK: break;
      case KGRPO_CODER_NOT_APPLICABLE: return Outcome(kNotApplicable);
      case KGRPO_CODER_UNCLEAR: return Outcome(kUnclear);
      case KGRPO_CODER_NO_KERNEL: return Outcome(options.no_kernel);
      default: return Outcome(kCoderError);
    }
  }
  if (!request.unchanged) return ScoreKernel(options, Need(request.candidate, "evaluation of the candidate"));
  // An unchanged kernel may not have been evaluated again: the evaluation of the current one then applies.
  const kgrpo_evaluation* known = request.candidate != nullptr ? request.candidate : request.current;
  const RewardParts kernel = ScoreKernel(options, Need(known, "evaluation of the unchanged kernel"));
  // A candidate cannot escape the penalty of a failing kernel by leaving it unchanged.
  return Outcome(known->correct ? options.unchanged : std::min(options.unchanged, kernel.outcome));
}

double IdleScore(const SpeedupRewardOptions& options, const kgrpo_reward_request& request) {
  return ScoreKernel(options, Need(request.current, "evaluation of the current kernel")).total();
}

}  // namespace kgrpo::reward
