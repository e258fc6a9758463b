#include "loop/draws.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace kgrpo {

std::vector<size_t> DrawOtherProblems(KeyedStream& random, std::span<const uint32_t> drawn,
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

std::vector<uint32_t> DrawInEpochs(uint64_t seed, std::string_view stream, std::vector<uint64_t> key, uint64_t draw,
                                   size_t per_draw, size_t count) {
  // An epoch's order may depend on the draw that it begins in, and so on the epoch before. Every so many draws an epoch
  // and a draw begin together; no order depends on what is before that.
  const uint64_t cycle = count / std::gcd(count, per_draw);
  const uint64_t first = draw - draw % cycle;
  uint64_t position = first * per_draw;
  key.push_back(0);  // the epoch
  std::vector<uint32_t> order, drawn;
  for (uint64_t i = first; i <= draw; ++i) {
    drawn.clear();
    std::vector<bool> rest_of_epoch(count);  // drawn by this draw from the epoch that it began in the middle of
    bool in_middle = position % count != 0;
    for (; drawn.size() < per_draw; ++position) {
      if (position % count == 0) {
        in_middle = false;
        key.back() = position / count;
        order.clear();
        std::vector<uint32_t> later;
        for (const size_t index : KeyedStream(seed, stream, key).Permutation(count)) {
          const bool put_off = rest_of_epoch[index] || order.size() >= per_draw - drawn.size();
          (put_off ? later : order).push_back(static_cast<uint32_t>(index));
        }
        order.insert(order.end(), later.begin(), later.end());
      }
      drawn.push_back(order[position % count]);
      if (in_middle) rest_of_epoch[drawn.back()] = true;
    }
  }
  return drawn;
}

std::vector<Assignment> DrawAssignments(uint64_t seed, Purpose purpose, uint64_t sequence, uint64_t draw,
                                        size_t trajectories, size_t per_problem, std::span<const std::string> families,
                                        bool shuffle_prompts) {
  const uint64_t kind = static_cast<uint64_t>(purpose);
  const size_t draws = trajectories / per_problem;
  const std::vector<uint32_t> drawn = DrawInEpochs(seed, "problems", {kind, sequence}, draw, draws, families.size());
  std::vector<size_t> others(draws);
  std::iota(others.begin(), others.end(), size_t{0});
  if (shuffle_prompts) {
    KeyedStream random(seed, "shuffle prompts", {kind, sequence, draw});
    others = DrawOtherProblems(random, drawn, families);
  }
  std::vector<Assignment> assignments;
  for (size_t i = 0; i < draws; ++i) {
    for (size_t k = 0; k < per_problem; ++k) {
      assignments.push_back({drawn[i], static_cast<uint32_t>(others[i] * per_problem + k)});
    }
  }
  return assignments;
}

}  // namespace kgrpo
