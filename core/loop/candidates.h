// The candidates of a search for one problem's fastest kernel, counted in order. Used by loop/optimize.cc and by
// loop/optimize_training.cc.
#ifndef KGRPO_LOOP_CANDIDATES_H
#define KGRPO_LOOP_CANDIDATES_H

#include "loop/optimize.h"
#include "store/records.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace kgrpo {

class CandidateLog {
 public:
  // `tell` is called with each candidate. References outlive this; *result receives candidates and evaluations.
  CandidateLog(const OpenProblem& problem, const std::string& start, const Evaluation& start_evaluation,
               const std::function<void(const SearchCandidate&)>& tell, SearchResult* result);

  // Adds a round of the trajectory that has an outcome. `from_list`: as in SearchCandidate. `screening`: the screen's
  // evaluation, where a screen judged the round's kernel. A kernel with a screening and without an evaluation was
  // screened out.
  void Add(const TrajectoryRecord& trajectory, const RoundRecord& round, uint64_t wave, uint64_t updates,
           bool from_list = false, const std::optional<Evaluation>& screening = {}, const Screen* screen = nullptr);

 private:
  void CountScreenedOut(SearchCandidate* candidate);

  const OpenProblem& problem_;
  const std::function<void(const SearchCandidate&)>& tell_;
  SearchResult* result_;
  std::set<std::string> seen_;                // sources that were judged
  std::map<std::string, bool> screened_out_;  // screened-out sources; true: as not correct
  double best_;
};

}  // namespace kgrpo
#endif
