#include "judge/front/evaluator.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/support/sha256.h>
#include <unistd.h>

#include <cmath>
#include <utility>

#include "judge/front/timing_sizes.h"
#include "judge/problem/random.h"

namespace kgrpo::evaluator {
namespace {

// Returns the evaluation with seconds = the baseline's seconds / speedup. The quotient of the two times is then the
// speedup measured side by side, whatever the device has done since the baseline was measured.
KernelEvaluation BesideBaseline(KernelEvaluation evaluation, double baseline_seconds) {
  for (const auto& [name, value] : evaluation.metrics) {
    if (name == "speedup") evaluation.seconds = baseline_seconds / value;
    if (name == "speedup_low") evaluation.seconds_high = baseline_seconds / value;
    if (name == "speedup_high") evaluation.seconds_low = baseline_seconds / value;
  }
  return evaluation;
}

// Throws Error if the tensors of a size, which an oracle has in float64 as inputs and as outputs, would take more than
// a quarter of this machine's memory. A device's timing size is not computed here.
void RequireFits(const Problem& problem, bool modelled) {
  constexpr double kGiB = 1 << 30;
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  for (const auto& [name, size] : problem.SizesByName()) {
    if (!modelled && size == &problem.timing) continue;
    double bytes = 0;
    for (const Parameter& parameter : problem.parameters) {
      if (parameter.IsTensor()) bytes += static_cast<double>(parameter.RowsAt(*size).MemoryElements()) * sizeof(double);
    }
    if (bytes <= memory / 4) continue;
    throw Error(KGRPO_ERROR_INVALID, problem.directory + "/problem.yaml: sizes: the tensors of " + name + " take " +
                                         std::to_string(std::lround(bytes / kGiB)) +
                                         " GiB in float64, more than a quarter of this machine's " +
                                         std::to_string(std::lround(memory / kGiB)) + " GiB: choose smaller sizes");
  }
}

}  // namespace

bool TakeCompiled(const CompileOutcome& compiled, KernelEvaluation* evaluation) {
  evaluation->compile_seconds = compiled.seconds;
  evaluation->compile_cached = compiled.cached;
  evaluation->transient = compiled.transient;
  evaluation->compiled = compiled.Succeeded();
  if (evaluation->compiled) {
    evaluation->metrics = UsageMetrics(compiled.kernel.usage);
  } else {
    evaluation->verdict = compiled.verdict;
    evaluation->diagnosis = compiled.diagnosis;
  }
  return evaluation->compiled;
}

Evaluator::Evaluator(std::unique_ptr<Backend> backend, EvaluatorOptions options, EvaluationMemory::Report report)
    : backend_(std::move(backend)),
      options_(std::move(options)),
      memory_(options_.cache ? options_.cache_directory + "/evaluations.sqlite" : "", std::move(report)) {}

std::unique_ptr<const OpenProblems> Evaluator::Open(const std::string& directory) const {
  const Problem problem = LoadProblem(directory);
  RequireFits(problem, backend_->modelled());
  std::vector<std::unique_ptr<const OpenProblem>> sizes;
  sizes.push_back(backend_->Open(problem, options_));
  for (const Problem& one : FurtherTimingProblems(problem)) sizes.push_back(backend_->Open(one, options_));
  return std::make_unique<const OpenProblems>(std::move(sizes));
}

KernelEvaluation Evaluator::Baseline(const OpenProblems& open, const Request& request) {
  KernelEvaluation evaluation = Reference(open, request);
  RequireCorrectReference(evaluation, open.problem());
  return evaluation;
}

// Returns the reference kernel's evaluation, correct or not. The diagnosis of an incorrect one is for the problem's
// author, so nothing in it is hidden.
KernelEvaluation Evaluator::Reference(const OpenProblems& open, Request request) {
  RequireReference(open.problem());
  const std::string& source = open.problem().reference_source;
  if (backend_->modelled()) {
    KernelEvaluation evaluation = OverSizes(open, source, request);
    if (!evaluation.correct && !std::exchange(request.show_hidden, true)) evaluation = OverSizes(open, source, request);
    return evaluation;
  }
  const std::lock_guard<std::mutex> lock(open.mutex_);
  if (open.baseline_) return *open.baseline_;
  KernelEvaluation evaluation = OverSizes(open, source, {.seed = 0, .thorough = true, .show_hidden = true});
  if (!evaluation.correct) return evaluation;
  backend_->CompleteBaseline(open.first(), &evaluation);
  open.baseline_ = evaluation;
  return evaluation;
}

KernelEvaluation Evaluator::Evaluate(const OpenProblems& open, const std::string& source, const Request& request) {
  if (backend_->modelled()) return OverSizes(open, source, request);
  const double baseline_seconds = Baseline(open, request).seconds;
  KernelEvaluation evaluation = OverSizes(open, source, request);
  return evaluation.correct ? BesideBaseline(std::move(evaluation), baseline_seconds) : evaluation;
}

KernelEvaluation Evaluator::OverSizes(const OpenProblems& open, const std::string& source, const Request& request) {
  RequireNotRefused(open.problem());
  return OverTimingSizes(open.sizes_.size(), [&](size_t i) { return AtSize(*open.sizes_[i], source, request); });
}

KernelEvaluation Evaluator::AtSize(const OpenProblem& open, const std::string& source, const Request& request) {
  const bool modelled = backend_->modelled(), thorough = request.thorough;
  const std::string seed = std::to_string(options_.seed), &digest = open.problem.digest;
  // Not of the evaluator's version: a new one tries the same inputs.
  const std::string inputs =
      modelled && !thorough
          ? Sha256OfParts({seed, digest, source})
          : Sha256OfParts(
                {seed, std::to_string(request.seed) + (modelled || !thorough ? "" : " thorough"), digest, source});
  const auto evaluate = [&] {
    return backend_->Evaluate(open, source, KeyFromText(inputs), thorough, request.show_hidden);
  };
  // A model's reference is kept: every kernel of the problem is compared with it.
  const bool kept = !thorough || (modelled && source == open.problem.reference_source);
  if (request.show_hidden || !kept) return evaluate();
  return memory_.Get(Sha256OfParts({backend_->Version(), thorough ? "thorough" : "", inputs}), evaluate);
}

std::vector<ProblemFinding> Evaluator::Check(const OpenProblems& open) {
  if (!open.problem().refused.empty()) return {};
  if (!DraftAdvice(open.problem()).empty()) return FindDegenerate(open.problem(), {});
  std::vector<ProblemFinding> findings = backend_->FindDegenerateOutputs(open.first());
  RequireReference(open.problem());
  const auto evaluate = [&](uint64_t seed) {
    if (backend_->modelled() || seed == 0) return Reference(open, {.seed = seed, .thorough = true});
    return OverSizes(open, open.problem().reference_source, {.seed = seed, .thorough = true, .show_hidden = true});
  };
  for (ProblemFinding& finding : FindOfReference(open.problem(), evaluate)) findings.push_back(std::move(finding));
  return findings;
}

}  // namespace kgrpo::evaluator
