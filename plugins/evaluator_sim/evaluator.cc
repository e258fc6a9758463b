#include "evaluator_sim/evaluator.h"

#include <utility>

#include <kgrpo/support/sha256.h>
#include "evaluator_shared/random.h"
#include "evaluator_shared/timing_sizes.h"

namespace kgrpo::evaluator_sim {

Evaluator::Evaluator(const Options& options, Report report)
    : options_(options),
      kernel_evaluator_(options.kernel_evaluator),
      memory_(options.cache ? options.cache_directory + "/evaluations.sqlite" : "", std::move(report)) {}

std::unique_ptr<OpenProblem> Evaluator::Open(const std::string& directory) const {
  return std::make_unique<OpenProblem>(directory, options_.cache_directory, options_.cache, options_.rules);
}

KernelEvaluation Evaluator::Baseline(const OpenProblem& open, const Request& request) {
  KernelEvaluation evaluation = Reference(open, request);
  evaluator::RequireCorrectReference(evaluation, open.problem());
  return evaluation;
}

KernelEvaluation Evaluator::Reference(const OpenProblem& open, Request request) {
  evaluator::RequireReference(open.problem());
  const std::string& source = open.problem().reference_source;
  KernelEvaluation evaluation = Evaluate(open, source, request);
  // The diagnosis of an incorrect reference is for the problem's author, so nothing in it is hidden.
  if (!evaluation.correct && !std::exchange(request.show_hidden, true)) evaluation = Evaluate(open, source, request);
  return evaluation;
}

KernelEvaluation Evaluator::Evaluate(const OpenProblem& open, const std::string& source, const Request& request) {
  evaluator::RequireNotRefused(open.problem());
  return evaluator::OverTimingSizes(1 + open.further().size(), [&](size_t i) {
    return EvaluateOne(i == 0 ? open : *open.further()[i - 1], source, request);
  });
}

KernelEvaluation Evaluator::EvaluateOne(const OpenProblem& open, const std::string& source, const Request& request) {
  if (!request.thorough && !request.show_hidden) return EvaluateCached(open, source);
  if (!request.thorough) return kernel_evaluator_.Evaluate(open, source, KeyOf(open, source), false, true);
  const std::string inputs =
      Sha256OfParts({std::to_string(options_.seed), std::to_string(request.seed), open.problem().digest, source});
  const auto judged = [&] {
    return kernel_evaluator_.Evaluate(open, source, evaluator::KeyFromText(inputs), true, request.show_hidden);
  };
  // The reference's result is cached: every kernel of the problem is compared with it.
  if (request.show_hidden || source != open.problem().reference_source) return judged();
  return memory_.Get(Sha256OfParts({kernel_evaluator_.Version(), "thorough", inputs}), judged);
}

std::vector<evaluator::ProblemFinding> Evaluator::Check(const OpenProblem& open) {
  std::vector<evaluator::ProblemFinding> findings = evaluator::FindDegenerate(
      open.problem(),
      [&](const evaluator::CorrectnessCase& one, const std::vector<evaluator::Argument>& arguments) {
        return kernel_evaluator_.ExpectedOf(open, one, arguments);
      },
      open.checker());
  if (!open.problem().refused.empty() || !evaluator::DraftAdvice(open.problem()).empty()) return findings;
  evaluator::RequireReference(open.problem());
  const auto judge = [&](uint64_t seed) {
    KernelEvaluation evaluation =
        Evaluate(open, open.problem().reference_source, {.seed = seed, .thorough = true, .show_hidden = false});
    if (evaluation.correct) return evaluation;
    return Evaluate(open, open.problem().reference_source, {.seed = seed, .thorough = true, .show_hidden = true});
  };
  for (evaluator::ProblemFinding& finding : evaluator::FindOfReference(open.problem(), judge))
    findings.push_back(std::move(finding));
  return findings;
}

// The inputs are a function of seed, problem and source alone: a new version of the evaluator tries the same ones.
uint64_t Evaluator::KeyOf(const OpenProblem& open, const std::string& source) const {
  return evaluator::KeyFromText(Sha256OfParts({std::to_string(options_.seed), open.problem().digest, source}));
}

KernelEvaluation Evaluator::EvaluateCached(const OpenProblem& open, const std::string& source) {
  const std::string key =
      Sha256OfParts({kernel_evaluator_.Version(), std::to_string(options_.seed), open.problem().digest, source});
  return memory_.Get(key, [&] { return kernel_evaluator_.Evaluate(open, source, KeyOf(open, source), false); });
}

}  // namespace kgrpo::evaluator_sim
