// A problem opened for judging on a GPU: with its oracle, and the baseline's time once it is known. Made by the
// evaluator.
#ifndef KGRPO_EVALUATOR_CUDA_OPEN_PROBLEM_H
#define KGRPO_EVALUATOR_CUDA_OPEN_PROBLEM_H

#include <memory>
#include <string>

#include "evaluator_shared/oracle.h"   // Oracle
#include "evaluator_shared/problem.h"  // Problem
#include "evaluator_shared/rules.h"    // Rules

namespace kgrpo::evaluator_cuda {

struct OpenProblem {
  // Throws Error for a malformed problem or an oracle that does not compile.
  OpenProblem(const std::string& directory, const std::string& cache_directory,
              evaluator::Rules rules = evaluator::Rules::kOurs)
      : problem(evaluator::UnderRules(evaluator::LoadProblem(directory), rules)),
        oracle(evaluator::Oracle::Load(problem, cache_directory)) {}

  const evaluator::Problem problem;
  const std::shared_ptr<const evaluator::Oracle> oracle;  // null: the reference kernel is the oracle
};

}  // namespace kgrpo::evaluator_cuda

#endif
