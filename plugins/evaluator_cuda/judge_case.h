// What Judge's functions hand on to each other. Private to judge.cc and judge_time.cc.
#ifndef KGRPO_EVALUATOR_CUDA_JUDGE_CASE_H
#define KGRPO_EVALUATOR_CUDA_JUDGE_CASE_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "evaluator_cuda/judge.h"
#include "evaluator_shared/comparison.h"  // Expected
#include "evaluator_shared/inputs.h"      // Argument

namespace kgrpo::evaluator_cuda {

// One call at a correctness size.
struct Judge::Case {
  const evaluator::Bindings* size;
  std::string where;  // "rows=5, cols=256", or that it is not shown
  std::vector<evaluator::Argument> arguments;
  std::vector<evaluator::Expected>
      expected;  // by parameter; empty where the reference kernel is the oracle, until it has run
  double accumulations;
  uint8_t guard, poison;
};

// A worker that holds a problem's reference kernel.
struct Judge::Baseline {
  std::string digest;  // of the problem
  bool thorough;       // compiled by the route of thorough judgements
  std::unique_ptr<Worker> worker;
};

}  // namespace kgrpo::evaluator_cuda

#endif
