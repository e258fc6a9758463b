// Finds the one change to a kernel that would gain most: its time is estimated again with one cost removed.
// Used by the time model when it explains an estimate.
#ifndef KGRPO_INTERPRETER_SIMT_ADVICE_H_
#define KGRPO_INTERPRETER_SIMT_ADVICE_H_

#include <string>

#include "interpreter/simt/counts.h"
#include "interpreter/simt/time_model.h"

namespace kgrpo::simt {

// A sentence that says what to change and what that is worth ("about 3.1 times as fast"); "" where no single change
// gains 5%. `before` is what the L2 held before the launch, `seconds` the estimate for the counts as they are.
std::string Advise(const Counts& counts, const KernelResources& resources, const Device& device,
                   const L2Contents& before, double seconds);

}  // namespace kgrpo::simt
#endif  // KGRPO_INTERPRETER_SIMT_ADVICE_H_
