// Detects a coder whose every answer fails, step after step: a run would pay for it to the end and learn nothing. Used
// by loop/stage.cc, by loop/rounds_in_flight.cc in an evaluation, and by loop/learned.cc to name the commonest failure.
#ifndef KGRPO_LOOP_CODER_FAULTS_H
#define KGRPO_LOOP_CODER_FAULTS_H

#include "store/records.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace kgrpo {

// An evaluation or a search ends where the first kMostFaults answers of a rollout or wave are all the coder's own
// faults. After one useful answer the limit no longer applies.
inline constexpr size_t kMostFaults = 32;

class CoderFaults {
 public:
  // Takes the answers of a whole step. Returns a message for the user where all are faults, or none is a new kernel,
  // and the step before had no such message; else "". Throws KGRPO_ERROR_UNAVAILABLE, with the commonest fault and its
  // commonest message, at the `enough`-th step in a row in which all answers are faults.
  std::string Add(const std::vector<TrajectoryRecord>& trajectories, size_t enough);

  // Counts the fault `times` times.
  void Count(kgrpo_coder_outcome outcome, const std::string& message, size_t times);
  // "the commonest, 8 times, is truncated: the answer was cut off"; empty where none was counted.
  std::string Commonest() const;
  size_t count() const { return count_; }
  // Throws KGRPO_ERROR_UNAVAILABLE: "the coder's `which` 8 answers all failed; ...".
  [[noreturn]] void Throw(const std::string& which) const;

 private:
  std::string What() const;

  struct Fault {
    size_t count = 0;
    std::map<std::string, size_t> messages;
  };

  size_t count_ = 0;
  size_t steps_ = 0;             // in a row, in which all answers were faults
  bool without_kernel_ = false;  // the last step had no new kernel
  std::map<kgrpo_coder_outcome, Fault> faults_;
};

}  // namespace kgrpo
#endif
