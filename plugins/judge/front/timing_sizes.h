// Problems with several timing sizes: a kernel's time is the geometric mean over them. Used by both evaluators.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "judge/problem/problem.h"            // Problem
#include "judge/verdict/kernel_evaluation.h"  // KernelEvaluation

namespace kgrpo::evaluator {

// Returns a problem for each timing size but the first. It has that timing size alone, and the first visible size alone
// for correctness, since the problem itself is judged at all sizes.
std::vector<Problem> FurtherTimingProblems(const Problem& problem);

// Returns the evaluation over `count` timing sizes; `evaluate` gives the one at the i-th. The result is the first
// evaluation that is not correct, if there is one. Else seconds, "speedup" and their intervals are geometric means, so
// that the ratio of two kernels' seconds is the geometric mean of their speedups; "timing_size_seconds/N" is the time
// at the N-th size, from 1. The evaluation is transient if one of them is, and their own durations add up. Everything
// else is of the first size.
KernelEvaluation OverTimingSizes(size_t count, const std::function<KernelEvaluation(size_t i)>& evaluate);

}  // namespace kgrpo::evaluator
