#include "simt/time/advice.h"

#include <algorithm>
#include <vector>

#include "simt/time/time_sentence.h"

namespace kgrpo::simt {
namespace {

constexpr double kWorthIt = 1.05;  // speed-up below which nothing is advised
constexpr double kAlone = 1.1;     // if no single array gains this much, all arrays are named together

const std::string kNeighbours = "Let neighbouring threads ";

bool FillStores(ArrayTraffic& array) {
  if (array.store_sectors <= kWorthIt * array.store_ideal_sectors && array.store_partial_sectors == 0) return false;
  array.store_sectors = array.store_ideal_sectors;
  array.store_partial_sectors = array.store_partial_lines = 0;
  array.store_again = {};
  return true;
}

bool FillLoads(ArrayTraffic& array) {
  if (array.load_sectors <= kWorthIt * array.load_ideal_sectors) return false;
  array.load_sectors = array.load_ideal_sectors;
  for (double& missed : array.l1_miss_sectors) missed = std::min(missed, array.load_sectors);
  array.load_again = {};
  return true;
}

// "a", "a and b", "a, b and c"
std::string Listed(const std::vector<std::string>& names) {
  std::string text = names.front();
  for (size_t i = 1; i < names.size(); ++i) text += (i + 1 == names.size() ? " and " : ", ") + names[i];
  return text;
}

// Finds the next step towards fewer atomics on global memory, and the counts after it in `fewer`. Returns "" if there
// is none.
std::string FewerAtomics(const Counts& counts, double blocks_at_once, Counts* fewer) {
  const double turns = counts.busiest_atomic_turns;
  const FewerAtomicTurns& left = counts.fewer_atomic_turns;
  if (turns == 0) return "";
  // Lanes rarely meet where the data choose the address; then shuffles within the warp gain little.
  constexpr double kMeet = 8, kFewer = 1.5;
  if (turns >= kMeet * left.by_warp) {
    double requests = 0;
    for (const ArrayTraffic& array : counts.arrays) requests += array.atomic_requests;
    constexpr double kShuffles = 5;  // and as many additions
    fewer->busiest_atomic_turns = left.by_warp;
    fewer->exchange_wavefronts += kShuffles * requests;
    fewer->issued += 2 * kShuffles * requests;
    return "Add up within each warp, for one atomic a warp instead of one a thread";
  }
  double kept = counts.atomic_operations_by_block / std::max(1.0, counts.global_atomic_operations);
  std::string words = "Add up within each block before atomics to global memory";
  fewer->busiest_atomic_turns = left.by_block;
  if (turns < kFewer * left.by_block && kept * kFewer > 1) {
    // A block adds to each address once already: only fewer blocks add less often.
    fewer->busiest_atomic_turns = std::min(left.by_block, blocks_at_once * left.of_a_block);
    if (left.of_a_block == 0 || fewer->busiest_atomic_turns >= left.by_block) return "";
    kept *= fewer->busiest_atomic_turns / left.by_block;
    words = "Give each block more elements, for fewer atomics";
  }
  fewer->global_atomic_operations *= kept;
  for (ArrayTraffic& array : fewer->arrays) array.atomic_sectors *= kept;
  return words;
}

}  // namespace

std::string Advise(const Counts& counts, const KernelResources& resources, const Device& device,
                   const L2Contents& before, double seconds) {
  double best = kWorthIt;
  std::string words;
  // Returns the speed-up of `changed` and remembers the best one with its advice, `what`.
  const auto weigh = [&](const Counts& changed, const std::string& what) {
    L2Contents contents = before;
    const double times = seconds / EstimateTime(changed, resources, device, &contents, false).seconds;
    if (times > best) {
      best = times;
      words = what;
    }
    return times;
  };

  Counts changed = counts, all = counts;  // changed: one array or figure at a time; all: every array
  std::vector<std::string> names;
  double most_alone = 0;
  for (size_t i = 0; i < counts.arrays.size(); ++i) {
    const std::string& name = counts.arrays[i].name;
    bool found = false;
    const auto fill = [&](bool (*filled)(ArrayTraffic&), const char* access) {
      if (!filled(changed.arrays[i])) return;
      found = true;
      filled(all.arrays[i]);
      most_alone = std::max(most_alone, weigh(changed, kNeighbours + access + " neighbouring 16 bytes of " + name));
      changed.arrays[i] = counts.arrays[i];
    };
    fill(FillStores, "store");
    fill(FillLoads, "load");
    if (found) names.push_back(name);
  }
  if (names.size() > 1 && most_alone < kAlone)
    weigh(all, kNeighbours + "access neighbouring 16 bytes of " + Listed(names));

  const auto with = [&](double Counts::*figure, double value, const char* what) {
    if (value >= counts.*figure) return;
    changed.*figure = value;
    weigh(changed, what);
    changed.*figure = counts.*figure;
  };
  with(&Counts::shared_wavefronts, counts.shared_ideal_wavefronts, "Lay out shared memory without bank conflicts");
  if (counts.local_lines > 0) {
    Counts without = counts;
    without.local_sectors = without.local_lines = without.local_partial_lines = without.local_partial_sectors = 0;
    weigh(without, "Keep local arrays and spilled values in registers");
  }
  with(&Counts::shared_atomic_wavefronts, counts.shared_atomic_ideal_wavefronts,
       "Add up within a warp, or in several copies, before atomics to shared memory");
  const Occupancy occupancy = ComputeOccupancy(device, resources, counts.threads_per_block);
  const double blocks_at_once = static_cast<double>(occupancy.blocks_per_multiprocessor) * device.multiprocessors;
  if (const std::string what = FewerAtomics(counts, blocks_at_once, &changed); !what.empty()) weigh(changed, what);
  return words.empty() ? "" : words + Print(": about %.1f times as fast", best);
}

}  // namespace kgrpo::simt
