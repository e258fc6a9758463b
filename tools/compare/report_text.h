// Formats figures of policies, as text and as JSON. Used by evaluation.cc, eval/eval_policy.cc and
// optimize/main.cc.
#ifndef KGRPO_COMPARE_REPORT_TEXT_H
#define KGRPO_COMPARE_REPORT_TEXT_H

#include <nlohmann/json.hpp>
#include <string>

#include "loop/statistics.h"

namespace kgrpo {

// "56 of 128 answers; the most frequent reason, 40 times: it has no loop"; empty if every answer was a kernel.
// `refusals`: the coder's messages in answers without one.
inline std::string RefusedText(const Tally& refusals, uint64_t answers) {
  if (refusals.total() == 0) return "";
  const std::string commonest = refusals.favourite();
  return std::to_string(refusals.total()) + " of " + std::to_string(answers) + " answers; the most frequent reason, " +
         std::to_string(refusals.count(commonest)) + " times: " + commonest;
}

inline nlohmann::ordered_json IntervalJson(const Interval& interval) {
  return {{"value", interval.value}, {"low", interval.low}, {"high", interval.high}};
}

}  // namespace kgrpo
#endif
