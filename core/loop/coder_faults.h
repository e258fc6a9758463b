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

// Of an evaluation or a search: so many answers of a coder with nothing else end it. One that is of use now and then
// gets by.
inline constexpr size_t kMostFaults = 32;

class CoderFaults {
 public:
  // Takes the answers of a whole step. Where all are faults, or none is a new kernel, returns what to tell the user,
  // once for the steps in a row that are so; else "". Throws KGRPO_ERROR_UNAVAILABLE, with the commonest fault and its
  // commonest message, where all are faults in the `enough`-th step in a row.
  std::string Add(const std::vector<TrajectoryRecord>& trajectories, size_t enough);

  // Counts a fault so many times.
  void Count(kgrpo_coder_outcome outcome, const std::string& message, size_t times);
  // "the commonest, 8 times, is truncated: the answer was cut off"; empty where none was counted.
  std::string Commonest() const;
  size_t count() const { return count_; }
  // KGRPO_ERROR_UNAVAILABLE: "the coder's last 8 answers were all useless ...", and what to do then.
  [[noreturn]] void Throw(const std::string& which, const std::string& then) const;

 private:
  std::string What() const;

  struct Fault {
    size_t count = 0;
    std::map<std::string, size_t> messages;
  };

  size_t count_ = 0;
  size_t steps_ = 0;             // in a row, of faults alone
  bool without_kernel_ = false;  // was told of the steps before
  std::map<kgrpo_coder_outcome, Fault> faults_;
};

}  // namespace kgrpo
#endif
