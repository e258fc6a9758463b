#include "loop/refusals.h"

namespace kgrpo {

void Refusals::Add(const std::string& message) {
  ++answers_;
  ++without_kernel_;
  const uint64_t times = ++times_[message];
  if (times <= commonest_times_) return;
  commonest_times_ = times;
  commonest_ = message;
}

std::string Refusals::Text() const {
  if (without_kernel_ == 0) return "";
  return std::to_string(without_kernel_) + " of " + std::to_string(answers_) + " answers; the commonest reason, " +
         std::to_string(commonest_times_) + " times: " + commonest_;
}

}  // namespace kgrpo
