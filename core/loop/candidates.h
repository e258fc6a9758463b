// The candidates of a search for one problem's fastest kernel, counted in order. Used by loop/optimize.cc and by
// loop/optimize_training.cc.
#ifndef KGRPO_LOOP_CANDIDATES_H
#define KGRPO_LOOP_CANDIDATES_H

#include "loop/optimize.h"
#include "store/records.h"

#include <cstdint>
#include <functional>
#include <set>
#include <string>

namespace kgrpo {

class CandidateLog {
 public:
  // `tell` is called with each candidate. References outlive this; *result receives candidates and evaluations.
  CandidateLog(const OpenProblem& problem, const std::string& start, const Evaluation& start_evaluation,
               const std::function<void(const SearchCandidate&)>& tell, SearchResult* result);

  // A round that has an outcome, of that trajectory. `from_list`: as in the candidate.
  void Add(const TrajectoryRecord& trajectory, const RoundRecord& round, uint64_t wave, uint64_t updates,
           bool from_list = false);

 private:
  const OpenProblem& problem_;
  const std::function<void(const SearchCandidate&)>& tell_;
  SearchResult* result_;
  std::set<std::string> seen_;  // sources that were judged
  double best_;
};

}  // namespace kgrpo
#endif
