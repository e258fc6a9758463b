// ranks.h - divides an update's work among the ranks of a run, and combines their figures. Used by both trainers. A
// rank that is alone has all the work, and its figures are returned unchanged.
#pragma once
#include <kgrpo/sdk/collective.h>

#include <cstddef>
#include <span>
#include <vector>

#include "trainer_shared/metrics.h"

namespace kgrpo::trainer {

// Returns the indices of this rank's items, ascending; every item belongs to exactly one rank. The costliest item that
// is left goes to the rank with the least work (Graham 1969), so no rank has more than 4/3 of the best division's
// largest share.
std::vector<size_t> ShareOf(const Collective& ranks, std::span<const size_t> costs);

// Returns the summary of the values of all ranks, given this rank's own. Every rank calls it.
Summary CombinedOver(const Collective& ranks, const Summary& own);

}  // namespace kgrpo::trainer
