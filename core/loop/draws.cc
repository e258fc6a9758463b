#include "loop/draws.h"

#include "random/keyed.h"

#include <optional>

namespace kgrpo {

std::vector<Assignment> DrawAssignments(uint64_t seed, Purpose purpose, uint64_t step, size_t trajectories,
                                        size_t per_problem, size_t problem_count, bool shuffle_prompts) {
  const size_t draws = trajectories / per_problem;
  std::vector<uint32_t> drawn;
  for (uint64_t pass = 0; drawn.size() < draws; ++pass) {
    KeyedStream random(seed, "problems", {static_cast<uint64_t>(purpose), step, pass});
    for (const size_t problem : random.Permutation(problem_count)) {
      if (drawn.size() < draws) drawn.push_back(static_cast<uint32_t>(problem));
    }
  }
  size_t offset = 0;
  if (shuffle_prompts && draws > 1) {
    KeyedStream random(seed, "shuffle prompts", {static_cast<uint64_t>(purpose), step});
    offset = 1 + random.Below(draws - 1);
  }
  std::vector<Assignment> assignments;
  for (size_t i = 0; i < draws; ++i) {
    for (size_t k = 0; k < per_problem; ++k) assignments.push_back({drawn[i], drawn[(i + offset) % draws]});
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
