#include "loop/coder_faults.h"

#include "loop/trajectory.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <utility>

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
  size_t answers = 0, faults = 0, kernels = 0;
  ForEachAnswer(trajectories, [&](const CoderAnswer& answer) {
    ++answers;
    kernels += answer.outcome == KGRPO_CODER_OK ? 1 : 0;
    if (!CoderFailed(answer)) return;
    ++faults;
    Count(answer.outcome, answer.message, 1);
  });
  if (answers == 0) return "";
  const bool told = std::exchange(without_kernel_, kernels == 0);
  if (faults < answers) {
    count_ = 0;
    steps_ = 0;
    faults_.clear();
    if (kernels > 0 || told) return "";
    return "none of the coder's " + std::to_string(answers) +
           " answers was a new kernel: the suggestions did not apply, or were not understood. If that lasts, nothing "
           "is " +
           "learned";
  }
  if (++steps_ >= enough) Throw("last");
  if (steps_ > 1) return "";
  return "the coder's " + What() + "After " + std::to_string(enough) + " such steps in a row the run stops";
}

std::string CoderFaults::What() const {
  return std::to_string(count_) + " answers all failed; " + Commonest() + ". ";
}

void CoderFaults::Throw(const std::string& which) const {
  throw Error(KGRPO_ERROR_UNAVAILABLE,
              "the coder's " + which + " " + What() +
                  "Nothing can be learned from them: the cause is in the coder's script, options or service");
}

}  // namespace kgrpo
