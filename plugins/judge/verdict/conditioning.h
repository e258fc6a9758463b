// The scale of outputs by their own conditioning: how far they move when each floating input moves by about one unit in
// its last place. Sums that cancel move more than their value says, large sums of positive terms less. Used where
// problem.yaml gives no absolute tolerance.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "judge/inputs/inputs.h"       // Argument
#include "judge/problem/cases.h"       // CorrectnessCase
#include "judge/problem/problem.h"     // Problem
#include "judge/verdict/comparison.h"  // Expected

namespace kgrpo::evaluator {

// SubKey index, of a case's key, of the stream that moves its inputs.
inline constexpr uint64_t kMoveStream = ~uint64_t{20};

// Computes the outputs for these inputs, by parameter.
using Compute = std::function<std::vector<Expected>(const std::vector<Argument>&)>;

// Returns a scale for each output, by parameter: the root mean square, over elements and draws, of their change in
// units of the relative change of the inputs. Where a result jumps (a rounding, a comparison), the few elements that
// jump do not count. Empty where no scale is needed, or where no floating input can be moved. `expected`: the outputs
// for `arguments`. Throws what `compute` throws.
std::vector<double> Conditioning(const Problem& problem, const std::vector<Argument>& arguments,
                                 const std::vector<Expected>& expected, uint64_t key, const Compute& compute);

// Returns the bounds, for each written parameter, on the difference between a candidate's outputs at the timing size
// and the reference kernel's there. The reference has rounding errors too, and a sum of millions of terms may come out
// near zero, so an absolute tolerance of problem.yaml is raised to the error model's. The scale of the values comes
// from the largest correctness case, with its arguments and expected outputs; null: there is none. `oracle` computes
// outputs at that case's size; empty: there is none.
std::vector<ErrorBound> BoundsBesideReference(const Problem& problem, const CorrectnessCase* largest,
                                              const std::vector<Argument>& arguments,
                                              const std::vector<Expected>& expected, const Compute& oracle);

}  // namespace kgrpo::evaluator
