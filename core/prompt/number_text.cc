#include "prompt/number_text.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace kgrpo {

std::string ThreeDigits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::string Percent(double fraction) {
  return ThreeDigits(100 * fraction) + "%";
}

std::string FormatDollars(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value >= 0.1 || value == 0 ? "$%.2f" : "$%.2g", value);
  return text;
}

std::string Scaled(double value, const std::string& unit) {
  constexpr std::array<const char*, 7> kPrefixes = {"", "k", "M", "G", "T", "P", "E"};
  size_t prefix = 0;
  while (std::fabs(value) >= 999.5 && prefix + 1 < kPrefixes.size()) {
    value /= 1000;
    ++prefix;
  }
  const std::string suffix = kPrefixes[prefix] + unit;
  return ThreeDigits(value) + (suffix.empty() ? "" : " ") + suffix;
}

}  // namespace kgrpo
