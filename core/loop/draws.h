// Random draws of a step: problems, control permutations, demonstrations. All are keyed by the seed. Used by the loop.
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

// Returns `trajectories` assignments: draws trajectories / per_problem problems without replacement (again from all
// once all are drawn), each for per_problem consecutive trajectories. `families`: of each problem, by index. With
// `shuffle_prompts`, each trajectory gets the prompts of one on another drawn problem: see StrangerOf.
std::vector<Assignment> DrawAssignments(uint64_t seed, Purpose purpose, uint64_t step, size_t trajectories,
                                        size_t per_problem, std::span<const std::string> families,
                                        bool shuffle_prompts);

// The shuffle_prompts control. Returns, for each element of `drawn` (problems, as indices into `families`), the element
// whose prompts it gets. This is a random permutation in which no problem gets prompts of its own family, since those
// could be as informative as its own. If one family is more than half of `drawn`, only a problem's own prompts are
// avoided, where possible.
std::vector<size_t> StrangerOf(KeyedStream& random, std::span<const uint32_t> drawn,
                               std::span<const std::string> families);

// Returns the indices (below `count`) of the `per_update` demonstrations for update number `update` of a stage. Updates
// read an endless sequence of random permutations of all of them, so that each is used equally often.
std::vector<size_t> DrawDemonstrations(uint64_t seed, uint64_t first_step, uint64_t update, size_t per_update,
                                       size_t count);

}  // namespace kgrpo
#endif
