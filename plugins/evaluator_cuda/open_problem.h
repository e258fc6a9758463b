// A problem opened for judging on a GPU: with its oracle, and the baseline's time once it is known. Made by the
// evaluator.
#ifndef KGRPO_EVALUATOR_CUDA_OPEN_PROBLEM_H
#define KGRPO_EVALUATOR_CUDA_OPEN_PROBLEM_H

#include <memory>
#include <string>

#include "evaluator_shared/oracle.h"   // Oracle
#include "evaluator_shared/problem.h"  // Problem

namespace kgrpo::evaluator_cuda {

struct OpenProblem {
  // Throws Error for a malformed problem or an oracle that does not compile.
  OpenProblem(const std::string& directory, const std::string& cache_directory)
      : problem(evaluator::LoadProblem(directory)),
        oracle(evaluator::Oracle::Load(problem, cache_directory)) {}

  const evaluator::Problem problem;
  const std::shared_ptr<const evaluator::Oracle> oracle;  // null: the reference kernel is the oracle
};

}  // namespace kgrpo::evaluator_cuda

#endif
