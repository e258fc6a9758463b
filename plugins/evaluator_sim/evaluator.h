// KernelEvaluator with a cache: evaluations kept by content, one evaluation at a time for the same content, baselines.
// plugin.cc offers it through the ABI.
#ifndef KGRPO_EVALUATOR_SIM_EVALUATOR_H
#define KGRPO_EVALUATOR_SIM_EVALUATOR_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "evaluator_shared/evaluation_memory.h"  // EvaluationMemory
#include "evaluator_shared/problem_findings.h"   // ProblemFinding
#include "evaluator_sim/kernel_evaluator.h"      // KernelEvaluator, OpenProblem

namespace kgrpo::evaluator_sim {

// [any thread]
class Evaluator {
 public:
  struct Options {
    KernelEvaluator::Options kernel_evaluator;
    std::string cache_directory;  // for oracles and evaluations; must exist
    bool cache = true;            // keep evaluations on disk
    uint64_t seed = 0;            // changes every secret input
    evaluator::Rules rules = evaluator::Rules::kOurs;
  };

  // Called with each evaluation except the thorough ones.
  using Report = evaluator::EvaluationMemory::Report;

  explicit Evaluator(const Options& options, Report report = {});

  std::unique_ptr<OpenProblem> Open(const std::string& directory) const;

  // Parameters of an evaluation beside the source.
  struct Request {
    uint64_t seed = 0;         // of a thorough evaluation's inputs
    bool thorough = false;     // the most careful route; cached for the reference only
    bool show_hidden = false;  // the diagnosis names hidden sizes; not cached
  };

  // The reference kernel's evaluation. Throws Error(KGRPO_ERROR_INVALID) if it is not correct.
  KernelEvaluation Baseline(const OpenProblem& open, const Request& request);
  KernelEvaluation Baseline(const OpenProblem& open) { return Baseline(open, {}); }

  // Evaluates a candidate. The inputs are drawn from a key that depends on (seed option, problem, source) only, so the
  // same source gets the same evaluation in every run. The author of a source cannot know its inputs. A thorough
  // evaluation draws from the request's seed as well.
  KernelEvaluation Evaluate(const OpenProblem& open, const std::string& source, const Request& request);

  // Findings that make the problem degenerate, by its oracle or, without one, its reference kernel; and what is wrong
  // with that kernel.
  std::vector<evaluator::ProblemFinding> Check(const OpenProblem& open);

  const KernelEvaluator& kernel_evaluator() const { return kernel_evaluator_; }

 private:
  // Returns the reference kernel's evaluation, correct or not. Throws Error(KGRPO_ERROR_INVALID) if none exists.
  KernelEvaluation Reference(const OpenProblem& open, Request request);
  // At one timing size.
  KernelEvaluation EvaluateOne(const OpenProblem& open, const std::string& source, const Request& request);
  KernelEvaluation EvaluateCached(const OpenProblem& open, const std::string& source);
  uint64_t KeyOf(const OpenProblem& open, const std::string& source) const;

  const Options options_;
  KernelEvaluator kernel_evaluator_;
  evaluator::EvaluationMemory memory_;
};

}  // namespace kgrpo::evaluator_sim

#endif
