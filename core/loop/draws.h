// Random draws of a step: problems, control permutations, demonstrations. All are keyed by the seed, so that a resumed
// run draws what an unbroken one does. Used by the loop.
#ifndef KGRPO_LOOP_DRAWS_H
#define KGRPO_LOOP_DRAWS_H

#include "base/keyed.h"
#include "loop/rollout.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kgrpo {

// Returns draw number `draw` (from 0) of an endless sequence, `per_draw` indices below `count`. The sequence is epochs,
// one after the other: random permutations of all indices. The order within an epoch is such that the draw that it
// begins in has no index twice while there are others. A pure function of its arguments: `stream` and `key` name the
// sequence. Time: count * per_draw at most.
std::vector<uint32_t> DrawInEpochs(uint64_t seed, std::string_view stream, std::vector<uint64_t> key, uint64_t draw,
                                   size_t per_draw, size_t count);

// Returns `trajectories` assignments: trajectories / per_problem problems, each for per_problem consecutive
// trajectories. `sequence` and `draw`: see DrawInEpochs, which draws the problems. `families`: of each problem, by
// index. With `shuffle_prompts`, each trajectory gets the prompts of one on another drawn problem: see
// DrawOtherProblems.
std::vector<Assignment> DrawAssignments(uint64_t seed, Purpose purpose, uint64_t sequence, uint64_t draw,
                                        size_t trajectories, size_t per_problem, std::span<const std::string> families,
                                        bool shuffle_prompts);

// The shuffle_prompts control. Returns, for each element of `drawn` (problems, as indices into `families`), the element
// whose prompts it gets. This is a random permutation in which no problem gets prompts of its own family, since those
// could be as informative as its own. If one family is more than half of `drawn`, only a problem's own prompts are
// avoided, where possible.
std::vector<size_t> DrawOtherProblems(KeyedStream& random, std::span<const uint32_t> drawn,
                                      std::span<const std::string> families);

}  // namespace kgrpo
#endif
