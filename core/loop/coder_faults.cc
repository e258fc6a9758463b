#include "loop/coder_faults.h"

#include "loop/trajectory.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>

namespace kgrpo {

void CoderFaults::Count(kgrpo_coder_outcome outcome, const std::string& message, size_t times) {
  Fault& fault = faults_[outcome];
  fault.count += times;
  fault.messages[message] += times;
  count_ += times;
}

std::string CoderFaults::Commonest() const {
  if (count_ == 0) return "";
  const auto& [outcome, fault] = *std::max_element(
      faults_.begin(), faults_.end(), [](const auto& a, const auto& b) { return a.second.count < b.second.count; });
  const std::string& message =
      std::max_element(fault.messages.begin(), fault.messages.end(), [](const auto& a, const auto& b) {
        return a.second < b.second;
      })->first;
  return "the commonest, " + std::to_string(fault.count) + " times, is " + CoderOutcomeName(outcome) + ": " + message;
}

std::string CoderFaults::Add(const std::vector<TrajectoryRecord>& trajectories, size_t enough) {
  const size_t before = count_;
  bool any_use = false;
  ForEachAnswer(trajectories, [&](const CoderAnswer& answer) {
    if (CoderFailed(answer)) {
      Count(answer.outcome, answer.message, 1);
    } else {
      any_use = true;
    }
  });
  if (any_use) {
    count_ = 0;
    steps_ = 0;
    faults_.clear();
  }
  if (any_use || count_ == before) return "";
  const std::string what =
      std::to_string(count_) + " answers were all useless for a fault of its own; " + Commonest() + ". ";
  if (++steps_ < enough) {
    if (steps_ > 1) return "";
    return "the coder's " + what + "After " + std::to_string(enough) + " such steps in a row the run stops";
  }
  throw Error(KGRPO_ERROR_UNAVAILABLE,
              "the coder's last " + what +
                  "Nothing can be learned from such answers: mend the cause in the coder's options, then resume");
}

}  // namespace kgrpo
