#include "loop/untried.h"

#include "base/keyed.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace kgrpo {

Untried::Untried(std::vector<std::string> list, const Trajectory& start) : list_(std::move(list)) {
  kernels_.push_back({start, {}});
  by_source_[start.code_b()] = &kernels_.front();
}

void Untried::Add(const RoundRecord& round, const Trajectory& after) {
  if (const auto from = by_source_.find(round.code_b); from != by_source_.end())
    from->second->tried.insert(round.suggestion);
  if (!after.record().dropped.empty()) return;
  Trajectory applied = after.AppliedAlone();
  if (const auto known = by_source_.find(after.code_b()); known != by_source_.end()) {
    if (applied.round() < known->second->trajectory.round()) known->second->trajectory = std::move(applied);
    return;
  }
  kernels_.push_back({std::move(applied), {}});
  by_source_[after.code_b()] = &kernels_.back();
}

std::vector<Untried::Choice> Untried::Next(uint64_t most, uint64_t beam, uint64_t samples, uint64_t seed,
                                           uint64_t wave) const {
  std::vector<const Kernel*> order;
  for (const Kernel& kernel : kernels_) order.push_back(&kernel);
  std::stable_sort(order.begin() + 1, order.end(), [](const Kernel* a, const Kernel* b) {
    return a->trajectory.current().seconds < b->trajectory.current().seconds;
  });
  std::vector<Choice> choices;
  uint64_t kernels = 0;
  for (const Kernel* kernel : order) {
    if (kernel->trajectory.done()) continue;
    std::vector<std::string> left;
    std::ranges::copy_if(list_, std::back_inserter(left),
                         [kernel](const std::string& suggestion) { return !kernel->tried.contains(suggestion); });
    if (left.empty()) continue;
    const bool is_start = kernel == &kernels_.front();
    const size_t count = is_start ? left.size() : std::min<size_t>(left.size(), samples);
    const std::vector<size_t> places = KeyedStream(seed, "optimize list", {wave, kernels}).Permutation(left.size());
    for (size_t i = 0; i < count && choices.size() < most; ++i)
      choices.push_back({&kernel->trajectory, left[places[i]]});
    if (is_start || ++kernels == beam) break;
  }
  return choices;
}

}  // namespace kgrpo
