#include "evaluator_sim/simt/block_sample.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace kgrpo::simt {

std::vector<uint64_t> SampleBlocks(uint64_t blocks, uint32_t count, uint64_t seed) {
  std::vector<uint64_t> chosen;
  if (blocks <= count) {
    for (uint64_t i = 0; i < blocks; ++i) chosen.push_back(i);
    return chosen;
  }
  constexpr uint64_t kGolden = 0x9E3779B97F4A7C15ull;  // 2^64 / golden ratio: a low-discrepancy sequence
  uint64_t x = seed * 0xD1B54A32D192ED03ull + kGolden / 2;
  while (chosen.size() < count) {
    x += kGolden;
    __extension__ using Wide = unsigned __int128;
    const auto block = static_cast<uint64_t>((static_cast<Wide>(x) * blocks) >> 64);
    if (std::find(chosen.begin(), chosen.end(), block) == chosen.end()) chosen.push_back(block);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::vector<uint64_t> ExtendSample(uint64_t blocks, uint64_t seed, double work, std::vector<uint64_t>* sample) {
  constexpr double kTimes = 8, kEnoughWork = 200'000;
  const auto have = static_cast<double>(sample->size());
  const double wanted = std::min(kTimes * have, have + kEnoughWork / std::max(1.0, work));
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
