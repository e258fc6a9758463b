// A problem opened for evaluation at one timing size: under the evaluator's rules, with its oracle or checker. Made by
// a Backend.
#pragma once

#include <memory>
#include <string>

#include "judge/inputs/source_inputs.h"  // WithSourceInputs
#include "judge/problem/problem.h"       // Problem
#include "judge/problem/rules.h"         // Rules
#include "judge/verdict/known_cases.h"   // KnownCases
#include "judge/verdict/oracle.h"        // Oracle, Checker

namespace kgrpo::evaluator {

struct OpenProblem {
  // Throws Error for a malformed problem or an oracle that does not compile.
  OpenProblem(const std::string& directory, const std::string& cache_directory, Rules rules = Rules::kOurs)
      : OpenProblem(LoadProblem(directory), cache_directory, rules) {}
  // Likewise, of a problem that has been read.
  OpenProblem(const Problem& loaded, const std::string& cache_directory, Rules rules)
      : problem(WithSourceInputs(UnderRules(loaded, rules), cache_directory)),
        oracle(Oracle::Load(problem, cache_directory)),
        checker(Checker::Load(problem, cache_directory)),
        by_trials(rules == Rules::kKernelBench && !oracle && !checker) {}
  virtual ~OpenProblem() = default;
  OpenProblem(const OpenProblem&) = delete;
  OpenProblem& operator=(const OpenProblem&) = delete;

  const Problem problem;
  const std::shared_ptr<const Oracle> oracle;    // null: the reference kernel, or a checker
  const std::shared_ptr<const Checker> checker;  // null without checker.cc
  // There are no correctness cases: outputs are compared at the timing size alone, for several inputs.
  const bool by_trials;
  mutable KnownCases known;  // by the oracle, or else the reference kernel
};

}  // namespace kgrpo::evaluator
