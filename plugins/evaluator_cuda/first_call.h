// Detects a batch whose first call does the work of those after it. Used by the timer for its verdict.
#ifndef KGRPO_EVALUATOR_CUDA_FIRST_CALL_H
#define KGRPO_EVALUATOR_CUDA_FIRST_CALL_H

#include <vector>

namespace kgrpo::evaluator_cuda {

struct FirstCall {
  double seconds = 0;        // how much longer it takes than the others, less what the reference's does
  bool does_others = false;  // by more than a call may, as sure as the rounds can tell
};

// `rests`, `reference_rests`: what a batch takes beside its calls, seconds, of at least one pair of rounds each;
// `call_seconds`: of one of the candidate's calls. A first call may take longer by 15 us and half a call, since its
// code is not in the cache yet. It is found where the 95% intervals of both medians leave no less than that, or the
// candidate's median twice as much beyond the reference's interval: a candidate cannot widen its interval to escape.
FirstCall CompareFirstCalls(const std::vector<double>& rests, const std::vector<double>& reference_rests,
                            double call_seconds);

}  // namespace kgrpo::evaluator_cuda

#endif
