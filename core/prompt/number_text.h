// Figures as people read them: three digits, with a percent sign or a decimal prefix; sums of money. Used by what shows
// metrics, in prompts, on a terminal and in reports.
#ifndef KGRPO_PROMPT_NUMBER_TEXT_H
#define KGRPO_PROMPT_NUMBER_TEXT_H

#include <string>

namespace kgrpo {

// "0.333", "12.5"
std::string ThreeDigits(double value);

// "40%", of a part of a whole.
std::string Percent(double fraction);

// "$12.35", "$0.0042": of a few cents enough digits to tell it from nothing.
std::string FormatDollars(double value);

// "3.02 TB/s" and the like: with a decimal prefix.
std::string Scaled(double value, const std::string& unit);

}  // namespace kgrpo
#endif
