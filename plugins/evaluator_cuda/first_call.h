// Detects a batch whose first call does the work of those after it. Used by the timer for its verdict.
#pragma once

#include <vector>

namespace kgrpo::evaluator_cuda {

struct FirstCall {
  double seconds = 0;        // by which the first call exceeds the others, less the same figure of the reference
  bool does_others = false;  // by more than a first call may, beyond the noise of the rounds
};

// `rests`, `reference_rests`: seconds that a batch takes beside its calls, one value for each pair of rounds, at least
// one of each. `call_seconds`: time of one of the candidate's calls. A first call may take longer by 15 us and half a
// call, since its code is not in the cache yet. does_others is set if the 95% intervals of both medians leave more than
// that between them, or if the candidate's median lies twice as much above the reference's interval: a candidate cannot
// widen its own interval to escape.
FirstCall CompareFirstCalls(const std::vector<double>& rests, const std::vector<double>& reference_rests,
                            double call_seconds);

}  // namespace kgrpo::evaluator_cuda
