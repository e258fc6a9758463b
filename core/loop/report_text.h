// Formats figures of policies, as text and as JSON. Used by policy_report.cc and compare_policies.cc.
#ifndef KGRPO_LOOP_REPORT_TEXT_H
#define KGRPO_LOOP_REPORT_TEXT_H

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "loop/statistics.h"

namespace kgrpo {

// As printf does; at most 255 characters.
std::string Format(const char* format, auto... arguments) {
  char text[256];
  std::snprintf(text, sizeof text, format, arguments...);
  return text;
}

inline nlohmann::ordered_json IntervalJson(const Interval& interval) {
  return {{"value", interval.value}, {"low", interval.low}, {"high", interval.high}};
}

}  // namespace kgrpo
#endif
