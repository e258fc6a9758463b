// What every evaluator's plugin.cc needs to speak the ABI: a problem's description and a judgement, as C structs.
#ifndef KGRPO_EVALUATOR_SHARED_INTERFACE_H
#define KGRPO_EVALUATOR_SHARED_INTERFACE_H

#include <kgrpo/evaluator.h>

#include <string>
#include <vector>

#include "evaluator_shared/judgement.h"  // Judgement
#include "evaluator_shared/problem.h"    // Problem

namespace kgrpo::evaluator {

// A problem as the ABI describes it; refers to the problem, which outlives it.
class ProblemDescription {
 public:
  explicit ProblemDescription(const Problem& problem);
  ProblemDescription(const ProblemDescription&) = delete;
  ProblemDescription& operator=(const ProblemDescription&) = delete;
  const kgrpo_problem_info& info() const { return info_; }

 private:
  std::string task_, signature_;
  std::vector<kgrpo_str> traits_;
  kgrpo_problem_info info_;
};

// Whether the caller asks for hidden sizes: one of a host that knows the member.
bool ShowsHidden(const kgrpo_evaluate_request& request);

// Hands the judgement to whoever asked for it.
void Put(const Judgement& judgement, bool modelled, const std::string& time_source, const kgrpo_evaluation_sink& sink);

}  // namespace kgrpo::evaluator

#endif
