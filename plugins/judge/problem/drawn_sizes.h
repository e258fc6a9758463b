// Sizes that problem.yaml does not list, drawn by an evaluation's secret key. Used by CorrectnessCases.
#pragma once

#include <cstdint>
#include <vector>

#include "judge/problem/problem.h"  // Problem, Bindings

namespace kgrpo::evaluator {

// Returns one size among the listed ones (odd where that is possible), the smallest value of each symbol together, and
// for each symbol a size that exceeds the timing size in it while the others stay small. A size has what all listed
// ones have in common: a value that never changes, a common divisor, powers of two, one symbol at most another or a
// divisor of it. Ranges of problem.yaml replace what the listed sizes span. A large size is left out where it would be
// expensive, which depends on `thorough`. Empty for problems whose files belong to listed sizes (TorchScript).
std::vector<Bindings> DrawSizes(const Problem& problem, uint64_t key, bool thorough);

// True if every tensor has at least one element at `size`, and what may lie in the same memory has the same form.
bool IsPossible(const Problem& problem, const Bindings& size);

}  // namespace kgrpo::evaluator
