#include "loop/draws.h"

#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>

namespace kgrpo {

std::vector<size_t> StrangerOf(KeyedStream& random, std::span<const std::string> families) {
  constexpr int kTries = 256;  // of large permutations one in three leaves nothing in its place
  std::vector<size_t> best;
  size_t least = SIZE_MAX;
  for (int i = 0; i < kTries && least > 0; ++i) {
    std::vector<size_t> others = random.Permutation(families.size());
    size_t cost = 0;  // a problem with its own prompts is worse than any number of those with their family's
    for (size_t problem = 0; problem < others.size(); ++problem) {
      if (others[problem] == problem) {
        cost += families.size() + 1;
      } else if (families[problem] == families[others[problem]]) {
        cost += 1;
      }
    }
    if (cost >= least) continue;
    least = cost;
    best = std::move(others);
  }
  return best;
}

std::vector<Assignment> DrawAssignments(uint64_t seed, Purpose purpose, uint64_t step, size_t trajectories,
                                        size_t per_problem, std::span<const std::string> families,
                                        bool shuffle_prompts) {
  const size_t draws = trajectories / per_problem;
  std::vector<uint32_t> drawn;
  for (uint64_t pass = 0; drawn.size() < draws; ++pass) {
    KeyedStream random(seed, "problems", {static_cast<uint64_t>(purpose), step, pass});
    for (const size_t problem : random.Permutation(families.size())) {
      if (drawn.size() < draws) drawn.push_back(static_cast<uint32_t>(problem));
    }
  }
  std::vector<size_t> others(draws);
  std::iota(others.begin(), others.end(), size_t{0});
  if (shuffle_prompts) {
    std::vector<std::string> drawn_families;
    for (const uint32_t problem : drawn) drawn_families.push_back(families[problem]);
    KeyedStream random(seed, "shuffle prompts", {static_cast<uint64_t>(purpose), step});
    others = StrangerOf(random, drawn_families);
  }
  std::vector<Assignment> assignments;
  for (size_t i = 0; i < draws; ++i) {
    for (size_t k = 0; k < per_problem; ++k) {
      assignments.push_back({drawn[i], static_cast<uint32_t>(others[i] * per_problem + k)});
    }
  }
  return assignments;
}

std::vector<size_t> DrawDemonstrations(uint64_t seed, uint64_t first_step, uint64_t update, size_t per_update,
                                       size_t count) {
  std::vector<size_t> drawn;
  std::vector<size_t> order;
  std::optional<uint64_t> order_of;  // the epoch that `order` is of
  for (size_t i = 0; i < per_update; ++i) {
    const uint64_t position = update * per_update + i;
    const uint64_t epoch = position / count;
    if (order_of != epoch) {
      order = KeyedStream(seed, "demonstrations", {first_step, epoch}).Permutation(count);
      order_of = epoch;
    }
    drawn.push_back(order[position % count]);
  }
  return drawn;
}

}  // namespace kgrpo
