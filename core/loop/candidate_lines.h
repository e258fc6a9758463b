// The candidates of a search as lines of text, with repeated lines counted for candidates that gave no new kernel. Used
// by cli/optimize_command.cc.
#ifndef KGRPO_LOOP_CANDIDATE_LINES_H
#define KGRPO_LOOP_CANDIDATE_LINES_H

#include "loop/optimize.h"
#include "loop/refusals.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kgrpo {

class CandidateLines {
 public:
  // `start_speedup`: of the start over the reference; shown speedups are over the start.
  explicit CandidateLines(double start_speedup) : start_speedup_(start_speedup) {}

  // "unroll 4: correct 1.20x", "unroll 4: not_applicable (its kernels have no for loop)", "unroll 4: screened out at
  // 0.90x by the screen's time".
  std::string Said(const SearchCandidate& candidate) const;

  // Counts the candidate. Returns false where it led to no new kernel and its line was shown before.
  bool Add(const SearchCandidate& candidate);

  // "207 times  unroll 4: not_applicable (...)": lines for which Add returned false, the most frequent first. At most
  // kShown of them, and one line about the rest.
  std::vector<std::string> Repeats() const;

  const Refusals& refusals() const { return refusals_; }

  static constexpr size_t kShown = 12;

 private:
  double start_speedup_;
  std::map<std::string, uint64_t> times_;  // by line; candidates that led to no new kernel
  Refusals refusals_;
};

}  // namespace kgrpo
#endif
