// Problems with several timing sizes: a kernel's time is the geometric mean over them. Used by both evaluators.
#ifndef KGRPO_EVALUATOR_SHARED_TIMING_SIZES_H
#define KGRPO_EVALUATOR_SHARED_TIMING_SIZES_H

#include <cstddef>
#include <functional>
#include <vector>

#include "evaluator_shared/kernel_evaluation.h"  // KernelEvaluation
#include "evaluator_shared/problem.h"            // Problem

namespace kgrpo::evaluator {

// For each timing size but the first the problem that has it as its only one, and the first visible size alone for
// correctness, since the problem itself is judged at all of them.
std::vector<Problem> FurtherTimingProblems(const Problem& problem);

// The evaluation over `count` timing sizes; `evaluate` gives the one at the i-th. The first that is not correct is the
// result. Else seconds, "speedup" and their intervals are geometric means, so that the ratio of two kernels' seconds is
// the geometric mean of their speedups; "timing_size_seconds/N" is the time at the N-th size, from 1. Everything else
// is of the first size.
KernelEvaluation OverTimingSizes(size_t count, const std::function<KernelEvaluation(size_t i)>& evaluate);

}  // namespace kgrpo::evaluator

#endif
