#include <kgrpo/support/number_text.h>

#include <array>
#include <cmath>

namespace kgrpo {

std::string ThreeDigits(double value) {
  const bool large = std::fabs(value) >= 999.5 && std::fabs(value) < 1e6;  // "%.3g" would give "1.23e+03"
  return Format(large ? "%.0f" : "%.3g", value);
}

std::string Percent(double fraction) { return ThreeDigits(100 * fraction) + "%"; }

std::string FormatDollars(double value) { return Format(value >= 0.1 || value == 0 ? "$%.2f" : "$%.2g", value); }

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
    if (seconds >= 0.9995 * candidate.size) {
      unit = &candidate;
      break;
    }
  }
  return ThreeDigits(seconds / unit->size) + " " + unit->name;
}

}  // namespace kgrpo
