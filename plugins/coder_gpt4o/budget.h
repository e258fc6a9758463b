// The cost of calls, and a limit on it: before a call is made, its highest possible cost is reserved. Used by
// coder.cc, under its mutex.
#pragma once

#include <kgrpo/support/number_text.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kgrpo::coder_gpt4o {

// In US dollars per million tokens.
struct Price {
  double prompt = 0;
  double completion = 0;
  std::optional<double> cached_prompt = {};  // of prompt tokens that the service has in its cache; else as the others

  double Of(uint64_t prompt_tokens, uint64_t completion_tokens, uint64_t cached_tokens = 0) const {
    const auto cached = static_cast<double>(cached_tokens);
    const double saved = (prompt - cached_prompt.value_or(prompt)) * cached;
    return (prompt * static_cast<double>(prompt_tokens) + completion * static_cast<double>(completion_tokens) - saved) *
           1e-6;
  }
};

// An amount for messages, "$0.04123". Amounts below $0.0001 show one digit: "$0.00004".
inline std::string Dollars(double value) {
  constexpr double kLittle = 1e-4;  // %g writes an exponent below this
  if (value <= 0 || value >= kLittle) return Format("$%.4g", value);
  return Format("$%.*f", std::min(20, static_cast<int>(std::ceil(-std::log10(value)))), value);
}

// Estimates the tokens of a text from its length, too high rather than too low: English has four to five bytes a token,
// code three to four.
inline uint64_t TokensAtMost(uint64_t bytes) { return bytes / 3 + 1; }
inline uint64_t TokensAtMost(std::string_view text) { return TokensAtMost(text.size()); }

class Budget {
 public:
  // Without a limit, everything fits.
  explicit Budget(std::optional<double> limit) : limit_(limit) {}

  void Spend(double cost) { spent_ += cost; }

  // Changes the amount that is set aside for a call. Returns false, and changes nothing, if a larger one exceeds the
  // limit together with the spending and the amounts of the other calls.
  bool SetAside(double* amount, double cost) {
    const double others = std::max(0.0, set_aside_ - *amount);
    if (limit_ && cost > *amount && spent_ + others + cost > *limit_) return false;
    set_aside_ = others + cost;
    *amount = cost;
    return true;
  }

  double spent() const { return spent_; }

 private:
  std::optional<double> limit_;
  double spent_ = 0, set_aside_ = 0;
};

}  // namespace kgrpo::coder_gpt4o
