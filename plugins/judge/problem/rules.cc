#include "judge/problem/rules.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>

#include <kgrpo/support/sha256.h>

namespace kgrpo::evaluator {

Rules RulesFromName(const std::string& name) {
  if (name == "ours") return Rules::kOurs;
  if (name == "kernelbench") return Rules::kKernelBench;
  throw Error(KGRPO_ERROR_INVALID, "rules: \"" + name + "\" is neither ours nor kernelbench");
}

Problem UnderRules(Problem problem, Rules rules) {
  if (rules == Rules::kOurs || !problem.refused.empty()) return problem;
  problem.visible = {problem.timing};
  problem.hidden.clear();
  problem.further_cases = false;
  bool half = false;
  for (Parameter& parameter : problem.parameters) {
    parameter.also.clear();
    parameter.may_alias.reset();
    half = half || (parameter.IsWritten() && Info(parameter.dtype).is_floating && Info(parameter.dtype).size == 2);
  }
  const double tolerance = half ? 1e-2 : 1e-4;
  problem.tolerance = {.relative = tolerance, .absolute = tolerance, .differing = 0, .accumulation = {}};
  problem.needed_bytes = problem.needed_flops = Expression(0);
  // Without a file for the timing size the reference kernel says what is expected there, and no other size is asked
  // for.
  const bool has_timing = std::any_of(problem.oracle_files.begin(), problem.oracle_files.end(),
                                      [&](const auto& file) { return file.first == problem.timing; });
  if (problem.oracle == OracleKind::kTorchScript && !has_timing) problem.oracle = OracleKind::kReference;
  problem.digest = Sha256OfParts({problem.digest, "rules of KernelBench"});
  return problem;
}

}  // namespace kgrpo::evaluator
