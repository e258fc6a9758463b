// The calls of an evaluation at correctness sizes: the key of each one's inputs, and which outputs lie in an input's
// memory. Both evaluators run the same calls, in this order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "judge/problem/problem.h"  // Problem, Bindings

namespace kgrpo::evaluator {

// How floating inputs are drawn in a case.
enum class InputValues {
  kListed,        // as problem.yaml says
  kWhole,         // whole numbers or multiples of a power of two, whose sums and products are exact
  kConstantRows,  // one value for each row
  kLargeOffset,   // one of the inputs far from zero
  kWideSpread,    // one of the inputs so wide that exp of a difference overflows
};

struct CorrectnessCase {
  // One of a parameter's `also`.
  struct Alternative {
    size_t parameter, index;
  };

  const Bindings* size = nullptr;         // one of the problem's, or *drawn
  std::shared_ptr<const Bindings> drawn;  // a size that problem.yaml does not list
  std::string where;                      // "rows=5, cols=256", or that the size is hidden; and what else is unusual
  uint64_t key = 0;                       // of its inputs
  int variant = 0;                        // counts the seeds from 0
  std::optional<Alternative> alternative;
  bool aliased = false;  // every output that may alias an input lies in its memory
  // Beyond the sizes and values of problem.yaml. Where the reference kernel fails too, such a case decides nothing.
  bool further = false;
  InputValues values = InputValues::kListed;
  size_t parameter = 0;     // the input that kLargeOffset and kWideSpread are about
  double scalars = 1;       // floating scalars without a range are multiplied by it
  bool same_place = false;  // tensors at the addresses of the case before, which has the same size

  // The byte that fills the gaps between a tensor's rows. For the first seed it is a NaN of every floating dtype. For
  // other seeds it gives numbers of magnitude 2 or more and of either sign, so that writing NaNs changes it. An output
  // has another byte than the inputs, so that copying an input's gaps shows.
  uint8_t GapByte(Role role = Role::kInput) const;
  // True if a parameter is drawn from `extremes`.
  bool DrawsExtremes(const Problem& problem) const;
  // True if values are drawn that problem.yaml does not ask for, only to find results that are no numbers or far off.
  bool IsStress() const { return values != InputValues::kListed && values != InputValues::kWhole; }
};

// For every seed every visible and hidden size, after the last seed's each time the same size with whole numbers, other
// scalars and the same addresses. Then for every seed each alternative distribution, at the largest size for the first
// seed and at one drawn by the key for others. Then unusual values of floating inputs, and sizes drawn by the key
// (drawn_sizes.h). Then, where an output may alias an input, every size again. The first is an ordinary one.
// `thorough`: drawn sizes may be larger. `show_hidden`: `where` names hidden sizes too, for the problem's author alone.
// `problem` outlives the cases.
std::vector<CorrectnessCase> CorrectnessCases(const Problem& problem, uint64_t key, int seeds, bool thorough = false,
                                              bool show_hidden = false);

// A sentence about the call at the timing size, with that size: for the problem's author alone, as above.
std::string NameTimingSize(const Problem& problem, std::string sentence);

}  // namespace kgrpo::evaluator
