#include "loop/draws.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

namespace kgrpo {

std::vector<size_t> StrangerOf(KeyedStream& random, std::span<const uint32_t> drawn,
                               std::span<const std::string> families) {
  // The order below groups families, and problems within them. Moving on by the size of the largest family then always
  // ends in another family.
  const std::vector<size_t> shuffled = random.Permutation(drawn.size());
  std::map<std::string, size_t> family_place;  // order of first occurrence
  std::map<uint32_t, size_t> problem_place;
  std::map<std::string, size_t> family_size;
  std::map<uint32_t, size_t> problem_size;
  for (const size_t i : shuffled) {
    const std::string& family = families[drawn[i]];
    family_place.emplace(family, family_place.size());
    problem_place.emplace(drawn[i], problem_place.size());
    ++family_size[family];
    ++problem_size[drawn[i]];
  }
  std::vector<size_t> order = shuffled;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(family_place[families[drawn[a]]], problem_place[drawn[a]]) <
           std::pair(family_place[families[drawn[b]]], problem_place[drawn[b]]);
  });
  const auto largest = [](const auto& sizes) {
    size_t most = 0;
    for (const auto& [name, size] : sizes) most = std::max(most, size);
    return most;
  };
  size_t step = largest(family_size);
  if (2 * step > drawn.size()) step = largest(problem_size);
  std::vector<size_t> others(drawn.size());
  for (size_t place = 0; place < order.size(); ++place) others[order[place]] = order[(place + step) % order.size()];
  return others;
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
    KeyedStream random(seed, "shuffle prompts", {static_cast<uint64_t>(purpose), step});
    others = StrangerOf(random, drawn, families);
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
