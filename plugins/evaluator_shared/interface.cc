#include "evaluator_shared/interface.h"

#include <kgrpo/sdk/text.h>

namespace kgrpo::evaluator {

ProblemDescription::ProblemDescription(const Problem& problem)
    : task_(problem.TaskText()), signature_(problem.Signature()) {
  for (const std::string& trait : problem.traits) traits_.push_back(Str(trait));
  info_ = {sizeof info_,       Str(problem.name), Str(problem.title), Str(problem.family),
           Str(problem.split), Str(task_),        Str(signature_),    Str(problem.reference_source),
           traits_.data(),     traits_.size()};
}

bool ShowsHidden(const kgrpo_evaluate_request& request) {
  return KGRPO_HAS_MEMBER(&request, kgrpo_evaluate_request, show_hidden) && request.show_hidden != 0;
}

void Put(const Judgement& judgement, bool modelled, const std::string& time_source, const kgrpo_evaluation_sink& sink) {
  std::vector<kgrpo_metric> metrics;
  for (const auto& [name, value] : judgement.metrics) metrics.push_back({Str(name), value});
  kgrpo_evaluation evaluation = {};
  evaluation.struct_size = sizeof evaluation;
  evaluation.compiled = judgement.compiled ? 1 : 0;
  evaluation.correct = judgement.correct ? 1 : 0;
  evaluation.verdict = Str(judgement.verdict);
  evaluation.seconds = judgement.seconds;
  evaluation.seconds_low = judgement.seconds_low;
  evaluation.seconds_high = judgement.seconds_high;
  evaluation.modelled = modelled ? 1 : 0;
  evaluation.time_source = Str(time_source);
  evaluation.diagnosis = Str(judgement.diagnosis);
  evaluation.metrics = metrics.data();
  evaluation.metric_count = metrics.size();
  sink.put(sink.context, &evaluation);
}

}  // namespace kgrpo::evaluator
