// The candidates of a search as a few lines that are redrawn on a terminal: the fastest kernels so far, the last
// suggestion, and the rounds under way. Used by cli/optimize_command.cc.
#ifndef KGRPO_LOOP_CANDIDATE_TABLE_H
#define KGRPO_LOOP_CANDIDATE_TABLE_H

#include "loop/optimize.h"
#include "loop/rollout.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kgrpo {

class CandidateTable {
 public:
  // `evaluations`: of the search, at most. `start_speedup`: of the start over the reference; shown speedups are over
  // the start.
  CandidateTable(uint64_t evaluations, double start_speedup)
      : evaluations_(evaluations), start_speedup_(start_speedup) {}

  // `last`: the candidate in words.
  void Add(const SearchCandidate& candidate, const std::string& last);
  void SetUnderWay(const RoundsUnderWay& rounds) { under_way_ = rounds; }

  // A line on the search, a heading and at most kShown candidates (the fastest first, each source once), and the last
  // suggestion.
  std::vector<std::string> Lines() const;

  static constexpr size_t kShown = 8;

 private:
  struct Row {
    double speedup;
    uint64_t evaluation;
    uint32_t round;
    std::string suggestions;
  };

  uint64_t evaluations_;
  double start_speedup_;
  uint64_t judged_ = 0, screened_out_ = 0;
  double best_ = 1;
  std::vector<Row> fastest_;
  std::string last_;
  RoundsUnderWay under_way_;
};

}  // namespace kgrpo
#endif
