// Decides whether the outputs of one correctness case are right, by the oracle and, where they seem wrong, by what the
// reference kernel makes of the same case. Called by both evaluators.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "judge/problem/cases.h"  // CorrectnessCase
#include "judge/verdict/comparison.h"
#include "judge/verdict/conditioning.h"       // Compute
#include "judge/verdict/kernel_evaluation.h"  // Trouble
#include "judge/verdict/known_cases.h"

namespace kgrpo::evaluator {

// What decides beside the outputs.
struct CaseRule {
  const Problem& problem;
  const CorrectnessCase& one;
  const std::vector<Argument>& arguments;
  const std::vector<Expected>& expected;  // by parameter
  Compute oracle;                         // null: the reference kernel is the oracle
  // Runs the reference kernel on other inputs of this case; throws Error where it fails. May be null.
  Compute reference;
  bool is_reference = false;  // the kernel judged is the reference
  KnownCases* known = nullptr;
};

struct CaseVerdict {
  Trouble trouble = {};
  bool decides = true;              // false: the reference fails, too, so the case says nothing of the kernel
  std::string why = {};             // it does not decide
  std::vector<double> errors = {};  // by parameter, the largest in units of the tolerance; empty unless it is right
};

// `outputs`: the bytes of each output, by parameter. `unwritten`: by parameter, for each element whether it was never
// written; empty where all were. Throws what the functions of `rule` throw, except errors of the reference.
CaseVerdict JudgeOutputs(const CaseRule& rule, const std::vector<std::vector<uint8_t>>& outputs,
                         const std::vector<std::vector<bool>>& unwritten);

// For a case that ended in trouble before there were outputs to compare: true if it is beyond what problem.yaml lists
// and the reference fails there, too.
bool ReferenceFails(const CaseRule& rule);

}  // namespace kgrpo::evaluator
