#include "trainer_shared/ranks.h"

#include <algorithm>
#include <numeric>

namespace kgrpo::trainer {

std::vector<size_t> ShareOf(const Collective& ranks, std::span<const size_t> costs) {
  std::vector<size_t> order(costs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (ranks.alone()) return order;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return costs[a] > costs[b]; });
  std::vector<size_t> loads(ranks.size(), 0), share;
  for (size_t item : order) {
    const auto least = std::min_element(loads.begin(), loads.end());
    *least += costs[item];
    if (least - loads.begin() == static_cast<std::ptrdiff_t>(ranks.rank())) share.push_back(item);
  }
  std::sort(share.begin(), share.end());
  return share;
}

Summary CombinedOver(const Collective& ranks, const Summary& own) {
  if (ranks.alone()) return own;
  const auto count = static_cast<double>(own.count());
  double sums[] = {count, count * own.mean()};
  ranks.Sum(sums);
  const double mean = sums[0] == 0 ? 0 : sums[1] / sums[0];
  const double distance = own.mean() - mean;
  const double squares = ranks.SumOf(own.squares() + count * distance * distance);
  return {static_cast<size_t>(sums[0]), mean, squares, ranks.MinOf(own.min()), ranks.MaxOf(own.max())};
}

}  // namespace kgrpo::trainer
