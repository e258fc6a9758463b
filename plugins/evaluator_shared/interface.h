// Shared by every evaluator's plugin.cc for the ABI: a problem's description and an evaluation as C structs, the names
// of metrics, and reports.
#ifndef KGRPO_EVALUATOR_SHARED_INTERFACE_H
#define KGRPO_EVALUATOR_SHARED_INTERFACE_H

#include <kgrpo/evaluator_tools.h>
#include <kgrpo/sdk/host.h>

#include <string>
#include <vector>

#include "evaluator_shared/kernel_evaluation.h"  // KernelEvaluation
#include "evaluator_shared/problem.h"            // Problem
#include "evaluator_shared/problem_findings.h"   // ProblemFinding

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
  std::vector<kgrpo_str> traits_, flags_;
  kgrpo_problem_info info_;
};

// kgrpo_evaluator_interface.get_extension of an evaluator that offers these tools and nothing else.
template <const kgrpo_evaluator_tools* kTools>
const void* ToolsAlone(const kgrpo_evaluator*, kgrpo_str id) {
  return View(id) == KGRPO_EVALUATOR_TOOLS_INTERFACE ? kTools : nullptr;
}

// Declares the names of everything that evaluators measure; called once, in create.
void DeclareMetrics(const Host& host);

// Hands the evaluation and remarks on it to the caller's sink. The metrics "speedup", "speedup_low" and "speedup_high"
// of an evaluator that times kernel and reference side by side become the evaluation's.
void Put(const KernelEvaluation& found, bool modelled, const std::string& time_source,
         const kgrpo_evaluation_sink& sink);

// Writes the report of kgrpo_evaluator_tools. `description`: the evaluator's description of itself.
void PutReport(const Problem& problem, const std::string& description, const kgrpo_report_request& request,
               const kgrpo_text_sink& html);

// Writes the answer of kgrpo_evaluator_tools.explain_bound, from the evaluation's metrics.
void PutBound(const kgrpo_evaluation& candidate, const kgrpo_text_sink& text, const kgrpo_text_sink& json);

// Hands the findings to the caller's sink.
void PutFindings(const std::vector<ProblemFinding>& findings, const kgrpo_problem_finding_sink& sink);

}  // namespace kgrpo::evaluator

#endif
