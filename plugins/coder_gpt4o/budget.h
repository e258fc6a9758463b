// The cost of calls, and a limit on it: before a call is made, its highest possible cost is reserved. Used by
// coder.cc, under its mutex.
#ifndef KGRPO_CODER_GPT4O_BUDGET_H
#define KGRPO_CODER_GPT4O_BUDGET_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace kgrpo::coder_gpt4o {

// US dollars a million tokens.
struct Price {
  double prompt = 0;
  double completion = 0;

  double Of(uint64_t prompt_tokens, uint64_t completion_tokens) const {
    return (prompt * static_cast<double>(prompt_tokens) + completion * static_cast<double>(completion_tokens)) * 1e-6;
  }
};

// "$0.04123", for messages; of very little the first digit: "$0.00004".
inline std::string Dollars(double value) {
  constexpr double kLittle = 1e-4;  // below, %g writes an exponent
  char text[32];
  if (value > 0 && value < kLittle)
    std::snprintf(text, sizeof text, "$%.*f", std::min(20, static_cast<int>(std::ceil(-std::log10(value)))), value);
  else
    std::snprintf(text, sizeof text, "$%.4g", value);
  return text;
}

// Tokens of a text by its length, rather too many than too few: English has four to five bytes a token, code three to
// four.
inline uint64_t TokensAtMost(uint64_t bytes) {
  return bytes / 3 + 1;
}
inline uint64_t TokensAtMost(std::string_view text) {
  return TokensAtMost(text.size());
}

class Budget {
 public:
  // No limit: everything fits.
  explicit Budget(std::optional<double> limit) : limit_(limit) {}

  // Adds spending that was not reserved: before this run of the program.
  void AddSpent(double cost) { spent_ += cost; }

  // Puts the cost of a call aside; false where it does not fit beside what is spent and put aside.
  bool Reserve(double cost) {
    if (limit_ && spent_ + reserved_ + cost > *limit_) return false;
    reserved_ += cost;
    ++calls_;
    return true;
  }
  // Puts more aside for a call whose cost is put aside already; false where it does not fit.
  bool Extend(double cost) {
    if (limit_ && spent_ + reserved_ + cost > *limit_) return false;
    reserved_ += cost;
    return true;
  }
  // The call that `reserved` was put aside for is over, and cost `actual`.
  void Settle(double reserved, double actual) {
    spent_ += actual;
    reserved_ = --calls_ == 0 ? 0 : reserved_ - reserved;  // no rounding is left behind
  }

  double spent() const { return spent_; }
  std::optional<double> limit() const { return limit_; }
  size_t calls() const { return calls_; }  // whose cost is put aside

 private:
  std::optional<double> limit_;
  double spent_ = 0;
  double reserved_ = 0;
  size_t calls_ = 0;
};

}  // namespace kgrpo::coder_gpt4o

#endif
