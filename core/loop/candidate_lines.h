// The candidates of a search as lines of text. Lines of candidates that gave no new kernel are counted where they
// repeat, and each reason of the coder's is told once. Used by cli/optimize_command.cc.
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

  // "unroll 4: correct 1.20x", "unroll 4: not_applicable (its kernels have no for loop)", "unroll 8: not_applicable (as
  // unroll 4)" if that reason was added before, "unroll 4: screened out at 0.90x by the screen's time".
  std::string Said(const SearchCandidate& candidate) const;

  // Counts the candidate. Returns false where it led to no new kernel and its line was shown before.
  bool Add(const SearchCandidate& candidate);

  // "207 times  not_applicable (...): unroll 4, unroll 8": reasons and lines that were added more than once, the most
  // frequent first. At most kShown of them, and one line about the rest.
  std::vector<std::string> Repeats() const;

  const Refusals& refusals() const { return refusals_; }

  static constexpr size_t kShown = 12;

 private:
  double start_speedup_;
  std::map<std::string, uint64_t> times_;                    // by line, or by outcome and reason: without a new kernel
  std::map<std::string, std::vector<std::string>> refused_;  // outcome and reason -> suggestions, in order
  Refusals refusals_;
};

}  // namespace kgrpo
#endif
