#include <kgrpo/support/number_text.h>

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

std::string FormatSeconds(double seconds) {
  struct Unit {
    double size;
    const char* name;
  };
  static constexpr Unit kUnits[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
  const Unit* unit = &kUnits[3];
  for (const Unit& candidate : kUnits) {
    if (seconds >= candidate.size) {
      unit = &candidate;
      break;
    }
  }
  char text[48];
  std::snprintf(text, sizeof text, "%.3g %s", seconds / unit->size, unit->name);
  return text;
}

}  // namespace kgrpo
