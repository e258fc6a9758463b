// The calls of an evaluation at correctness sizes: the key of each one's inputs, and which outputs lie in an input's
// memory. Both evaluators run the same calls, in this order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "judge/problem/problem.h"  // Problem, Bindings

namespace kgrpo::evaluator {

struct CorrectnessCase {
  // One of a parameter's `also`.
  struct Alternative {
    size_t parameter, index;
  };

  const Bindings* size = nullptr;  // one of the problem's
  std::string where;               // "rows=5, cols=256", or that the size is hidden; and what else is unusual
  uint64_t key = 0;                // of its inputs
  int variant = 0;                 // counts the seeds from 0
  std::optional<Alternative> alternative;
  bool aliased = false;  // every output that may alias an input lies in its memory

  // The byte that fills the gaps between a tensor's rows. For the first seed it is a NaN of every floating dtype. For
  // other seeds it gives numbers of magnitude 2 or more and of either sign, so that writing NaNs changes it. An output
  // has another byte than the inputs, so that copying an input's gaps shows.
  uint8_t GapByte(Role role = Role::kInput) const;
  // True if a parameter is drawn from `extremes`.
  bool DrawsExtremes(const Problem& problem) const;
};

// For every seed every visible and hidden size; then for every seed each alternative distribution, at the largest size
// for the first seed and at one drawn by the key for others; then, where an output may alias an input, every size
// again. The first is an ordinary one. `show_hidden`: `where` names hidden sizes too, for the problem's author alone.
// `problem` outlives the cases.
std::vector<CorrectnessCase> CorrectnessCases(const Problem& problem, uint64_t key, int seeds,
                                              bool show_hidden = false);

// A sentence about the call at the timing size, with that size: for the problem's author alone, as above.
std::string NameTimingSize(const Problem& problem, std::string sentence);

}  // namespace kgrpo::evaluator
