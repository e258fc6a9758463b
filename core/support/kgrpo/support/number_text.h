// Figures as people read them: three digits, with a percent sign or a decimal prefix; durations; sums of money. Used
// wherever metrics are shown: in prompts, on a terminal and in reports.
#ifndef KGRPO_SUPPORT_NUMBER_TEXT_H
#define KGRPO_SUPPORT_NUMBER_TEXT_H

#include <cstdio>
#include <string>

namespace kgrpo {

// As printf does; at most 255 characters.
std::string Format(const char* format, auto... arguments) {
  char text[256];
  std::snprintf(text, sizeof text, format, arguments...);
  return text;
}

// "0.333", "12.5"; whole from 1000 on: "1234". Seven digits and more: "1.23e+06".
std::string ThreeDigits(double value);

// "40%", of a part of a whole.
std::string Percent(double fraction);

// A duration: "812 ns", "12.3 us", "4.56 ms", "1.2 s".
std::string FormatSeconds(double seconds);

// "$12.35", "$0.0042": below 10 cents with two significant digits.
std::string FormatDollars(double value);

// "3.02 TB/s" and the like: with a decimal prefix.
std::string Scaled(double value, const std::string& unit);

}  // namespace kgrpo
#endif
