// ranks.h - how an update's work is divided among the ranks of a run, and its figures put together again. Used by both
// trainers; alone, a rank's share is everything and its figures are the figures.
#ifndef KGRPO_TRAINER_SHARED_RANKS_H
#define KGRPO_TRAINER_SHARED_RANKS_H
#include <kgrpo/sdk/collective.h>

#include <cstddef>
#include <span>
#include <vector>

#include "trainer_shared/metrics.h"

namespace kgrpo::trainer {

// The items that this rank works on, ascending; each item is some rank's. The costliest item that is left goes to the
// rank with the least to do (Graham 1969), so no rank has more than 4/3 of the best division's largest share.
std::vector<size_t> ShareOf(const Collective& ranks, std::span<const size_t> costs);

// Of the values that any rank added, from each rank's own. Every rank calls it.
Summary CombinedOver(const Collective& ranks, const Summary& own);

}  // namespace kgrpo::trainer
#endif
