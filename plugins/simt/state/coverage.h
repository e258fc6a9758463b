// Which edges of a kernel's control flow ran, with and without checks. The instructions that decide note them
// (control_ops.cc, call_ops.cc), and the scheduler where a predicate is false. The evaluators check what only the call
// at the timing size ran, and name what no call ran.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kgrpo::simt {

// The edges at one instruction, a bit each.
using Edges = uint8_t;
inline constexpr Edges kTaken = 1;            // a branch was taken, lanes exited, a function was called
inline constexpr Edges kPassed = 2;           // the predicate was false: lanes went on behind it
inline constexpr Edges kEntered = 4;          // a call arrived here
inline constexpr uint32_t kCheckedShift = 4;  // the same by a block that ran with every check

// The edges of one launch, or of several launches of one kernel.
struct Coverage {
  std::vector<Edges> edges;  // by pc; then by branch target, for brx.idx

  // A new edge, and the block that took it first.
  struct First {
    uint32_t at = 0;  // in `edges`
    uint64_t block = 0;
  };
  std::vector<First> firsts;

  // The bytes of the parameters, of each launch that had others.
  std::vector<std::vector<uint8_t>> parameters;

  // Adds another launch's edges and parameters, without its `firsts`.
  void Add(const Coverage& other) {
    constexpr size_t kMostParameters = 256;
    for (const std::vector<uint8_t>& one : other.parameters) {
      if (parameters.size() < kMostParameters &&
          std::find(parameters.begin(), parameters.end(), one) == parameters.end())
        parameters.push_back(one);
    }
    if (edges.size() < other.edges.size()) edges.resize(other.edges.size(), 0);
    for (size_t i = 0; i < other.edges.size(); ++i) edges[i] |= other.edges[i];
  }
  // The edges at `at` that ran, but never with checks.
  Edges Unchecked(uint32_t at) const {
    const uint32_t ran = edges[at] & ((1u << kCheckedShift) - 1), checked = edges[at] >> kCheckedShift;
    return static_cast<Edges>(ran & ~checked);
  }
};

}  // namespace kgrpo::simt
