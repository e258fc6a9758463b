// Finds the one change to a kernel that would gain most: its time is estimated again with one cost removed.
// Used by the time model when it explains an estimate.
#pragma once

#include <string>

#include "simt/state/counts.h"
#include "simt/time/time_model.h"

namespace kgrpo::simt {

// A sentence that says what to change and what that is worth ("about 3.1 times as fast"); "" where no single change
// gains 5%. `before` is what the L2 held before the launch, `seconds` the estimate for the counts as they are.
std::string Advise(const Counts& counts, const KernelResources& resources, const Device& device,
                   const L2Contents& before, double seconds);

}  // namespace kgrpo::simt
