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

std::string Scaled(double value, const std::string& unit) {
  constexpr std::array<const char*, 7> kPrefixes = {"", "k", "M", "G", "T", "P", "E"};
  size_t prefix = 0;
  while (std::fabs(value) >= 999.5 && prefix + 1 < kPrefixes.size()) {
    value /= 1000;
    ++prefix;
  }
  return ThreeDigits(value) + " " + kPrefixes[prefix] + unit;
}

}  // namespace kgrpo
