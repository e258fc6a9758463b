// Draws a problem's arguments: the values of inputs and scalars at one size, from a secret key. Called by the
// evaluators for each correctness case; the arguments of the same (problem, size, key, variant) are the same on every
// machine.
#pragma once

#include <cstdint>
#include <vector>

#include "judge/problem/cases.h"    // CorrectnessCase
#include "judge/problem/problem.h"  // Problem, Bindings

namespace kgrpo::evaluator {

// One argument of the launch function.
struct Argument {
  // Tensors: row-major bytes, without the gaps between rows. What an input or inout holds before the call; for an
  // output only its size matters.
  std::vector<uint8_t> bytes;
  int64_t elements = 1;
  // Scalars: the value in both forms, and its bytes in the signature's type in `bytes`.
  int64_t whole = 0;
  double real = 0;
};

// Draws every argument. `variant` counts the seeds of one evaluation from 0: odd variants of `normal` are shifted and
// scaled, so that an output that merely resembles its input does not pass. Throws Error(KGRPO_ERROR_INVALID) where a
// distribution's bounds make no sense at this size (low above high).
std::vector<Argument> DrawArguments(const Problem& problem, const Bindings& size, uint64_t key, int variant);
// The same for a correctness case, where a parameter may be drawn from another distribution than its first.
std::vector<Argument> DrawArguments(const Problem& problem, const CorrectnessCase& one);

// The tensor of an input or inout parameter, drawn from its own key.
Argument DrawTensor(const Parameter& parameter, const Bindings& size, uint64_t key, int variant);

// The scalars of a correctness case; tensors have no bytes.
std::vector<Argument> DrawScalars(const Problem& problem, const CorrectnessCase& one);

// The argument of a scalar parameter at a size.
Argument ScalarArgument(const Parameter& parameter, const Bindings& size);

// Spreads a tensor's rows to their places in memory: `gap` fills the space between rows and after the last one. Without
// gaps the bytes stay as they are.
std::vector<uint8_t> SpreadRows(const Rows& rows, DType dtype, std::vector<uint8_t> dense, uint8_t gap);
// The reverse of SpreadRows: leaves the gaps out.
std::vector<uint8_t> GatherRows(const Rows& rows, DType dtype, std::vector<uint8_t> memory);
// True if every gap is filled with that byte.
bool GapsHold(const Rows& rows, DType dtype, const std::vector<uint8_t>& memory, uint8_t gap);

// The byte that fills an output before each call: all ones, a NaN, for floating dtypes; one that depends on `key` for
// integers.
uint8_t PoisonByte(const Parameter& parameter, uint64_t key);

}  // namespace kgrpo::evaluator
