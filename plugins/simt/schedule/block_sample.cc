#include "simt/schedule/block_sample.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <queue>
#include <unordered_set>

namespace kgrpo::simt {

constexpr uint64_t kGolden = 0x9E3779B97F4A7C15ull;  // 2^64 / golden ratio: a low-discrepancy sequence

std::vector<uint64_t> SampleBlocks(uint64_t blocks, uint32_t count, uint64_t seed) {
  std::vector<uint64_t> chosen;
  if (blocks <= count) {
    for (uint64_t i = 0; i < blocks; ++i) chosen.push_back(i);
    return chosen;
  }
  uint64_t x = seed * 0xD1B54A32D192ED03ull + kGolden / 2;
  std::unordered_set<uint64_t> known;
  while (chosen.size() < count) {
    x += kGolden;
    __extension__ using Wide = unsigned __int128;
    const auto block = static_cast<uint64_t>((static_cast<Wide>(x) * blocks) >> 64);
    if (known.insert(block).second) chosen.push_back(block);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::vector<uint64_t> ExtendSample(uint64_t blocks, uint64_t seed, const std::vector<uint64_t>& work,
                                   std::vector<uint64_t>* sample) {
  constexpr double kTimes = 8, kEnoughWork = 200'000;
  if (sample->size() == blocks) return {};
  const auto have = static_cast<double>(sample->size());
  const auto mean =
      static_cast<double>(std::accumulate(work.begin(), work.end(), uint64_t{0})) / static_cast<double>(work.size());
  const double wanted = std::min(kTimes * have, have + kEnoughWork / std::max(1.0, mean));
  // The sequence of a larger sample begins with the smaller one's.
  const std::vector<uint64_t> larger = SampleBlocks(blocks, static_cast<uint32_t>(wanted), seed);
  std::vector<uint64_t> added;
  std::set_difference(larger.begin(), larger.end(), sample->begin(), sample->end(), std::back_inserter(added));
  *sample = larger;
  return added;
}

bool StandsForAll(const std::vector<uint64_t>& sample, const std::vector<uint64_t>& work,
                  const std::vector<uint32_t>& classes) {
  constexpr double kAlike = 1.25;       // factor between the largest work of all blocks and of the sample
  constexpr double kNegligible = 0.02;  // of all blocks
  constexpr double kOff = 0.1;          // relative difference of the sample's mean from the mean of all
  if (sample.size() >= work.size()) return true;
  const auto blocks = static_cast<double>(work.size()), counted = static_cast<double>(sample.size());
  const double mean = static_cast<double>(std::accumulate(work.begin(), work.end(), uint64_t{0})) / blocks;
  double sampled = 0, most_sampled = 0;
  for (const uint64_t block : sample) {
    const auto one = static_cast<double>(work[block]);
    sampled += one / counted;
    most_sampled = std::max(most_sampled, one);
  }
  const auto most = static_cast<double>(*std::max_element(work.begin(), work.end()));
  if (std::abs(sampled - mean) > kOff * mean || most > kAlike * most_sampled) return false;
  // Blocks that do the same work by other decisions may have another cost, so each class needs its share of the sample.
  struct Share {
    double all = 0, sampled = 0;
  };
  std::map<uint32_t, Share> shares;
  for (size_t i = 0; i < classes.size(); ++i) shares[classes[i]].all += 1 / blocks;
  if (classes.empty()) return true;
  for (const uint64_t block : sample) shares[classes[block]].sampled += 1 / counted;
  return std::all_of(shares.begin(), shares.end(), [&](const auto& one) {
    const Share& share = one.second;
    return share.all < kNegligible || (share.sampled > 0 && share.sampled > share.all / 2 - 1 / counted);
  });
}

std::vector<Stratum> Stratify(const std::vector<uint64_t>& work, const std::vector<uint32_t>& classes, uint64_t seed) {
  constexpr size_t kMostStrata = 8, kCountedWhole = 4, kCountedOfEach = 5;
  std::vector<uint64_t> order(work.size());
  std::iota(order.begin(), order.end(), uint64_t{0});
  const auto class_of = [&](uint64_t block) { return classes.empty() ? 0 : classes[block]; };
  std::sort(order.begin(), order.end(), [&](uint64_t a, uint64_t b) {
    if (work[a] != work[b]) return work[a] > work[b];
    if (class_of(a) != class_of(b)) return class_of(a) < class_of(b);
    const uint64_t drawn_a = (a ^ seed) * kGolden, drawn_b = (b ^ seed) * kGolden;
    return seed != 0 && drawn_a != drawn_b ? drawn_a < drawn_b : a < b;
  });
  std::vector<size_t> starts;  // in `order`
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || work[order[i]] != work[order[i - 1]] || class_of(order[i]) != class_of(order[i - 1]))
      starts.push_back(i);
  }
  if (starts.size() > kMostStrata) {  // too many: use groups with about the same total work
    double left = 0;
    for (const uint64_t one : work) left += static_cast<double>(one);
    const double part = left / static_cast<double>(kMostStrata);
    starts = {0};
    double sum = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      const auto one = static_cast<double>(work[order[i]]);
      if (i > starts.back() && sum + one / 2 > part && starts.size() < kMostStrata) {
        starts.push_back(i);
        sum = 0;
      }
      sum += one;
    }
  }
  std::vector<Stratum> strata;
  for (size_t s = 0; s < starts.size(); ++s) {
    const size_t first = starts[s], end = s + 1 < starts.size() ? starts[s + 1] : order.size(), size = end - first;
    Stratum stratum;
    stratum.blocks = size;
    const size_t wanted = size <= kCountedWhole ? size : kCountedOfEach;
    double all = 0, counted = 0;
    for (size_t i = first; i < end; ++i) all += static_cast<double>(work[order[i]]);
    for (size_t k = 0; k < wanted; ++k) {  // spread from the most to the least work
      const uint64_t block = order[first + k * (size - 1) / std::max<size_t>(1, wanted - 1)];
      stratum.counted.push_back(block);
      counted += static_cast<double>(work[block]);
    }
    std::sort(stratum.counted.begin(), stratum.counted.end());
    stratum.weight = counted > 0 ? all / counted : static_cast<double>(size) / static_cast<double>(wanted);
    strata.push_back(std::move(stratum));
  }
  return strata;
}

double BusiestBlocks(const std::vector<uint64_t>& work, uint32_t multiprocessors) {
  constexpr double kEven = 1.05;
  const auto blocks = static_cast<double>(work.size());
  const double mean = static_cast<double>(std::accumulate(work.begin(), work.end(), uint64_t{0})) / blocks;
  if (work.empty() || static_cast<double>(*std::max_element(work.begin(), work.end())) <= kEven * mean) return 0;
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> busy;  // when each multiprocessor is free
  for (uint32_t i = 0; i < multiprocessors; ++i) busy.push(0);
  uint64_t last = 0;
  for (const uint64_t one : work) {
    const uint64_t end = busy.top() + one;
    busy.pop();
    busy.push(end);
    last = std::max(last, end);
  }
  return static_cast<double>(last) / mean;
}

}  // namespace kgrpo::simt
