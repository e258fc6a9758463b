// Random draws of a step: problems, control permutations, demonstrations. All keyed. Used by the loop.
#ifndef KGRPO_LOOP_DRAWS_H
#define KGRPO_LOOP_DRAWS_H

#include "base/keyed.h"
#include "loop/rollout.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kgrpo {

// `trajectories` assignments: trajectories / per_problem problems of those with these `families`, without replacement
// while they last, each for per_problem trajectories in a row. With `shuffle_prompts`, each is given the
// prompts of a trajectory on another drawn problem: see StrangerOf.
std::vector<Assignment> DrawAssignments(uint64_t seed, Purpose purpose, uint64_t step, size_t trajectories,
                                        size_t per_problem, std::span<const std::string> families,
                                        bool shuffle_prompts);

// The shuffle_prompts control: for each element of `drawn` (problems, as indices into `families`), the element whose
// prompts it gets. A random permutation in which no problem gets prompts of its own family, since those could tell it
// as much as its own. If one family is more than half of `drawn`, only a problem's own prompts are avoided, where
// possible.
std::vector<size_t> StrangerOf(KeyedStream& random, std::span<const uint32_t> drawn,
                               std::span<const std::string> families);

// Which of `count` demonstrations the update number `update` of a stage gets: `per_update` of an endless sequence of
// random orders of all of them, so that each is used as often as any other.
std::vector<size_t> DrawDemonstrations(uint64_t seed, uint64_t first_step, uint64_t update, size_t per_update,
                                       size_t count);

}  // namespace kgrpo
#endif
