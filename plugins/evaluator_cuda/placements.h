// The placement of a call's tensors decides how long atomics at few addresses take: 1 KiB of counters is served by one
// slice of an H200's L2 where it begins at a multiple of 1 KiB, and by two slices 512 bytes further on, in half the
// time (notes/). cudaMalloc gives a program either place. So the timer puts every tensor at both, equally often.
// This file decides which sets a batch takes, and computes the time by placement from the rounds. Used by the timer.
#pragma once

#include <cstdint>
#include <vector>

#include "evaluator_cuda/rounds.h"

namespace kgrpo::evaluator_cuda {

constexpr uint64_t kPlacements = 2;
// Bytes after which the placements repeat; they are kPlacementPeriod / kPlacements apart.
constexpr uint64_t kPlacementPeriod = 1024;

// Sets take turns: a set's neighbour in number has the other placement.
constexpr uint64_t PlacementOf(uint64_t set) { return set % kPlacements; }

// Reorders `shuffled`: the first `leading` sets have `placement`, and the placements alternate after them while sets of
// both are left. Otherwise the order stays. A batch of `leading` calls and one with an even number more, both from the
// front, differ by calls that are at each placement equally often.
std::vector<uint64_t> OrderByPlacement(const std::vector<uint64_t>& shuffled, uint64_t leading, uint64_t placement);

// The time of a batch beside its calls, in one round.
struct RoundRest {
  uint64_t leading;    // calls of the short batch, all at `placement`
  uint64_t placement;  // of the round
  double seconds;      // the long batch's time less its number of calls times the slope between the two batches
};

// The same from pairs of rounds, one of each placement.
struct Rests {
  std::vector<double> seconds;  // what a batch takes beside its calls, at either placement; one value a pair of rounds
  std::vector<double> differences;  // seconds by which a call at placement 0 exceeds the mean; one value a pair
};

// Pairs each round with the next one of the other placement. With leading calls s and t, a mean call m and a difference
// d, their rests are r + s d and r - t d: so d and r follow.
Rests PairRests(const std::vector<RoundRest>& rounds);

// Returns half the difference between a call's time at one placement and at the other, in seconds. Returns 0 unless the
// interval of `differences` excludes 0 and the result is more than 2% of `call_seconds`.
double PlacementSpread(const std::vector<double>& differences, double call_seconds);

}  // namespace kgrpo::evaluator_cuda
