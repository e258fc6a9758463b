#include "evaluator_shared/interface.h"

#include <kgrpo/sdk/text.h>

#include "evaluator_shared/report/bound.h"
#include "evaluator_shared/report/declared_metrics.h"
#include "evaluator_shared/report/kernel_report.h"
#include "evaluator_shared/report/remarks.h"

namespace kgrpo::evaluator {

ProblemDescription::ProblemDescription(const Problem& problem)
    : task_(problem.TaskText()), signature_(problem.Signature()) {
  for (const std::string& trait : problem.traits) traits_.push_back(Str(trait));
  for (const std::string& flag : problem.flags) flags_.push_back(Str(flag));
  info_ = {sizeof info_,       Str(problem.name), Str(problem.title),   Str(problem.family),
           Str(problem.split), Str(task_),        Str(signature_),      Str(problem.reference_source),
           traits_.data(),     traits_.size(),    Str(problem.refused), flags_.data(),
           flags_.size()};
}

void DeclareMetrics(const Host& host) {
  for (const MetricDeclaration& metric : DeclaredMetrics()) host.Declare(metric);
}

void Put(const KernelEvaluation& found, bool modelled, const std::string& time_source,
         const kgrpo_evaluation_sink& sink) {
  Evaluation evaluation;
  evaluation.compiled = found.compiled;
  evaluation.correct = found.correct;
  evaluation.verdict = found.verdict;
  evaluation.seconds = found.seconds;
  evaluation.seconds_low = found.seconds_low;
  evaluation.seconds_high = found.seconds_high;
  evaluation.modelled = modelled;
  evaluation.time_source = time_source;
  evaluation.diagnosis = found.diagnosis;
  for (const auto& [name, value] : found.metrics) {
    if (name == "speedup")
      evaluation.speedup = value;
    else if (name == "speedup_low")
      evaluation.speedup_low = value;
    else if (name == "speedup_high")
      evaluation.speedup_high = value;
    else
      evaluation.metrics.push_back({name, value});
  }
  evaluation.remarks = RemarksOf(evaluation.metrics);
  sink.put(sink.context, evaluation.ToC().c());
}

void PutReport(const Problem& problem, const std::string& description, const kgrpo_report_request& request,
               const kgrpo_text_sink& html) {
  const std::string page =
      KernelReportHtml({problem.name, Copy(request.source_name), Copy(request.source),
                        Evaluation::FromC(*request.candidate), Evaluation::FromC(*request.baseline), description});
  html.put(html.context, Str(page));
}

void PutBound(const kgrpo_evaluation& candidate, const kgrpo_text_sink& text, const kgrpo_text_sink& json) {
  const std::optional<Bound> bound = BoundOf(Evaluation::FromC(candidate));
  if (!bound) return;
  const std::string lines = bound->ToText(), object = bound->ToJson().dump();
  text.put(text.context, Str(lines));
  json.put(json.context, Str(object));
}

void PutFindings(const std::vector<ProblemFinding>& findings, const kgrpo_problem_finding_sink& sink) {
  for (const ProblemFinding& finding : findings) {
    const kgrpo_problem_finding c = {Str(finding.code), Str(finding.sentence), Str(finding.advice)};
    sink.put(sink.context, &c);
  }
}

}  // namespace kgrpo::evaluator
