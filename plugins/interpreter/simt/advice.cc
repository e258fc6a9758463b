#include "interpreter/simt/advice.h"

#include <algorithm>

#include "interpreter/simt/time_sentence.h"

namespace kgrpo::simt {
namespace {

constexpr double kWorthIt = 1.05;  // times as fast

struct Change {
  Counts counts;      // with it
  std::string words;  // what to do
};

// Every change whose cause was counted.
std::vector<Change> Changes(const Counts& counts) {
  std::vector<Change> changes;
  const auto add = [&](std::string words) -> Counts& {
    changes.push_back({counts, std::move(words)});
    return changes.back().counts;
  };
  for (size_t i = 0; i < counts.arrays.size(); ++i) {
    const ArrayTraffic& array = counts.arrays[i];
    if (array.store_sectors > kWorthIt * array.store_ideal_sectors || array.store_partial_sectors > 0) {
      ArrayTraffic& whole = add("Let neighbouring threads store neighbouring 16 bytes of " + array.name).arrays[i];
      whole.store_sectors = array.store_ideal_sectors;
      whole.store_partial_sectors = whole.store_partial_lines = 0;
      whole.store_again = {};
    }
    if (array.load_sectors > kWorthIt * array.load_ideal_sectors) {
      ArrayTraffic& whole = add("Let neighbouring threads load neighbouring 16 bytes of " + array.name).arrays[i];
      const double used = array.load_ideal_sectors / array.load_sectors;
      whole.load_sectors = array.load_ideal_sectors;
      for (double& missed : whole.l1_miss_sectors) missed = std::min(missed, array.load_sectors * used);
      whole.load_again = {};
    }
  }
  if (counts.shared_wavefronts > kWorthIt * counts.shared_ideal_wavefronts)
    add("Lay out shared memory without bank conflicts").shared_wavefronts = counts.shared_ideal_wavefronts;
  if (counts.local_sectors > 0) add("Keep local arrays and spilled values in registers").local_sectors = 0;
  if (counts.busiest_atomic_turns > 0) {
    Counts& fewer = add("Add up within a block before atomics to global memory");
    fewer.busiest_atomic_turns = fewer.global_atomic_operations = 0;
  }
  if (counts.shared_atomic_wavefronts > 0)
    add("Add up within a warp, or in several copies, before atomics to shared memory").shared_atomic_wavefronts = 0;
  return changes;
}

}  // namespace

std::string Advise(const Counts& counts, const KernelResources& resources, const Device& device,
                   const L2Contents& before, double seconds) {
  double best = kWorthIt;
  std::string words;
  for (const Change& change : Changes(counts)) {
    L2Contents contents = before;
    const double times = seconds / EstimateTime(change.counts, resources, device, &contents, false).seconds;
    if (times <= best) continue;
    best = times;
    words = change.words;
  }
  return words.empty() ? "" : words + Print(": about %.1f times as fast", best);
}

}  // namespace kgrpo::simt
