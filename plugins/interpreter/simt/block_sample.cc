#include "interpreter/simt/block_sample.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <unordered_set>

namespace kgrpo::simt {

std::vector<uint64_t> SampleBlocks(uint64_t blocks, uint32_t count, uint64_t seed) {
  std::vector<uint64_t> chosen;
  if (blocks <= count) {
    for (uint64_t i = 0; i < blocks; ++i) chosen.push_back(i);
    return chosen;
  }
  constexpr uint64_t kGolden = 0x9E3779B97F4A7C15ull;  // 2^64 / golden ratio: a low-discrepancy sequence
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
  const auto mean = static_cast<double>(std::accumulate(work.begin(), work.end(), uint64_t{0})) / have;
  const double wanted = std::min(kTimes * have, have + kEnoughWork / std::max(1.0, mean));
  // The sequence of a larger sample begins with the smaller one's.
  const std::vector<uint64_t> larger = SampleBlocks(blocks, static_cast<uint32_t>(wanted), seed);
  std::vector<uint64_t> added;
  std::set_difference(larger.begin(), larger.end(), sample->begin(), sample->end(), std::back_inserter(added));
  *sample = larger;
  return added;
}

double Median(std::vector<uint64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return static_cast<double>(*middle);
}

}  // namespace kgrpo::simt
