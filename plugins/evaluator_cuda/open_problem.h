// A problem opened for judging on a GPU: with its oracle, and the baseline's time once it is known. Made by the
// evaluator.
#ifndef KGRPO_EVALUATOR_CUDA_OPEN_PROBLEM_H
#define KGRPO_EVALUATOR_CUDA_OPEN_PROBLEM_H

#include <memory>
#include <string>

#include "evaluator_shared/oracle.h"         // Oracle
#include "evaluator_shared/problem.h"        // Problem
#include "evaluator_shared/rules.h"          // Rules
#include "evaluator_shared/source_inputs.h"  // WithSourceInputs
#include "evaluator_shared/timing_sizes.h"   // FurtherTimingProblems

namespace kgrpo::evaluator_cuda {

struct OpenProblem {
  // Throws Error for a malformed problem or an oracle that does not compile.
  OpenProblem(const std::string& directory, const std::string& cache_directory,
              evaluator::Rules rules = evaluator::Rules::kOurs)
      : OpenProblem(evaluator::LoadProblem(directory), cache_directory, rules) {}
  // Likewise, of a problem that has been read.
  OpenProblem(const evaluator::Problem& loaded, const std::string& cache_directory, evaluator::Rules rules)
      : problem(evaluator::WithSourceInputs(evaluator::UnderRules(loaded, rules), cache_directory)),
        oracle(evaluator::Oracle::Load(problem, cache_directory)),
        checker(evaluator::Checker::Load(problem, cache_directory)),
        by_trials(rules == evaluator::Rules::kKernelBench && !oracle && !checker) {
    for (const evaluator::Problem& one : evaluator::FurtherTimingProblems(loaded))
      further.push_back(std::make_unique<const OpenProblem>(one, cache_directory, rules));
  }

  const evaluator::Problem problem;
  const std::shared_ptr<const evaluator::Oracle> oracle;    // null: the reference kernel, or a checker
  const std::shared_ptr<const evaluator::Checker> checker;  // null without checker.cc
  // There are no correctness cases: outputs are compared at the timing size alone, for some inputs, on the device.
  const bool by_trials;
  std::vector<std::unique_ptr<const OpenProblem>> further;  // one for each timing size but the first
};

}  // namespace kgrpo::evaluator_cuda

#endif
