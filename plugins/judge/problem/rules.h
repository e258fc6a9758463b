// By whose rules a kernel is judged: ours, or those of KernelBench's own evaluation, for figures that compare with
// published ones. The option `rules` of both evaluators; docs/judging.md says what differs.
#pragma once

#include <string>

#include "judge/problem/problem.h"  // Problem

namespace kgrpo::evaluator {

enum class Rules { kOurs, kKernelBench };

constexpr int kKernelBenchTrials = 5;  // inputs that KernelBench compares a kernel's outputs for

// "ours", "kernelbench". Throws Error(KGRPO_ERROR_INVALID) for another name.
Rules RulesFromName(const std::string& name);

// The problem as these rules see it. KernelBench's: the timing size alone is judged, with the first distribution of
// each input; an element may be off by 1e-4 + 1e-4 |expected|, or 1e-2 of both where an output has 16 bits; no time is
// too short to be believed. The digest becomes another one, since evaluations and expected outputs are kept by it.
Problem UnderRules(Problem problem, Rules rules);

}  // namespace kgrpo::evaluator
