// GridRun of counted launches: chooses the counted blocks, and extrapolates their counts to the grid.
#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "simt/schedule/block_census.h"
#include "simt/schedule/run_grid.h"

namespace kgrpo::simt {
namespace {

constexpr double kMostDataSlack = 0.5;  // of the counted work; beyond it, data decides how much a block does

// If the work of all blocks is known, scales the counts from the mean of the counted blocks to the mean of all.
void ScaleToMean(const std::vector<uint64_t>& counted, const std::vector<uint64_t>& work, Counts* counts) {
  const auto all = static_cast<double>(std::accumulate(work.begin(), work.end(), uint64_t{0}));
  double sampled = 0;
  for (const uint64_t block : counted)
    sampled += static_cast<double>(work[block]) / static_cast<double>(counted.size());
  if (sampled > 0) counts->Scale(all / static_cast<double>(work.size()) / sampled);
}

}  // namespace

void GridRun::AddGroup(Stratum stratum) {
  groups_.push_back({std::move(stratum), std::make_unique<Counter>(grid_)});
  Group& group = groups_.back();
  group.counter->StandsFor(group.stratum.blocks);
  for (const uint64_t block : group.stratum.counted) counts_[block] = group.counter.get();
  if (!all_) order_.insert(order_.end(), group.stratum.counted.begin(), group.stratum.counted.end());
}

void GridRun::ChooseCounted() {
  const LaunchConfig& config = *grid_.config;
  const ControlFlow& control = grid_.kernel->control;
  Stratum sample{total_, SampleBlocks(total_, config.sampled_blocks, config.sample_seed), 1};
  std::vector<uint32_t> classes;
  if (sample.counted.size() == total_) {
    // Every block is counted.
  } else if (!config.known_work.empty()) {
    planned_work_ = config.known_work;
  } else {
    std::optional<std::vector<BlockClass>> census;
    const bool extends = all_ && grid_.kernel->scatters_atomics;
    if (!control.by_data && (control.by_block || extends)) census = TakeCensus(grid_);
    if (!all_ && (control.by_data || (control.by_block && !census))) grid_.result->must_run_whole = true;
    if (census && census->size() == 1 && extends)
      ExtendSample(total_, config.sample_seed, {census->front().work}, &sample.counted);
    if (!all_ && config.further_blocks != 0) ChooseRepresentatives(census ? &*census : nullptr);
    if (census && census->size() > 1) {
      if (total_ > kMostListed) {
        grid_.result->must_run_whole = true;
      } else {
        planned_work_ = WorkByBlock(grid_, *census);
        classes = ClassByBlock(grid_, *census);
      }
    }
  }
  if (planned_work_.empty() || StandsForAll(sample.counted, planned_work_, classes)) {
    AddGroup(std::move(sample));
  } else {
    for (Stratum& stratum : Stratify(planned_work_, classes, config.sample_seed)) AddGroup(std::move(stratum));
    std::sort(order_.begin(), order_.end());
  }
  const auto counts = [&](uint64_t block) { return counts_.contains(block); };
  if (config.further_blocks == 0 || counts_.size() == total_) return;
  further_blocks_ = SampleBlocks(total_, config.further_blocks, config.further_seed);
  std::erase_if(further_blocks_, counts);
  further_ = std::make_unique<Counter>(grid_);
  if (all_ && further_)
    for (const uint64_t block : further_blocks_) counts_[block] = further_.get();
}

// If blocks that take the same decisions are alike, one of each kind shows whether the others are right.
void GridRun::ChooseRepresentatives(const std::vector<BlockClass>* classes) {
  constexpr size_t kMostClasses = 64;
  const ControlFlow& control = grid_.kernel->control;
  const Dim3& shape = grid_.config->grid;
  bool& shows_others = grid_.result->shows_others;
  shows_others = control.alike && (!control.by_block || (classes != nullptr && classes->size() <= kMostClasses));
  if (!shows_others || classes == nullptr || classes->size() == 1) return;  // any block is of the only class
  for (const BlockClass& one : *classes) {
    const std::array<uint32_t, 3>& at = one.ranges.front().low;
    of_each_class_.push_back((uint64_t{at[2]} * shape.y + at[1]) * shape.x + at[0]);
  }
}

// Neighbours, since a block most often disturbs the next one. They are not counted, unless
// all blocks are.
void GridRun::ChooseChecked() {
  constexpr int kTries = 64;
  const LaunchConfig& config = *grid_.config;
  checked_ = config.checked_blocks;
  const uint64_t wanted = std::min<uint64_t>(config.choose_checked, total_);
  const auto is_free = [&](uint64_t block) {
    return !counts_.contains(block) &&
           (all_ ||
            (block != total_ - 1 && !std::binary_search(further_blocks_.begin(), further_blocks_.end(), block)));
  };
  uint64_t first = 0;
  for (int i = 0; wanted != 0 && i < kTries; ++i) {
    first = SampleBlocks(total_ - wanted + 1, 1, config.further_seed + static_cast<uint64_t>(i)).front();
    bool all_free = true;
    for (uint64_t k = 0; k < wanted; ++k) all_free = all_free && is_free(first + k);
    if (all_free) break;
  }
  for (uint64_t k = 0; k < wanted; ++k)
    if (all_ || is_free(first + k)) checked_.push_back(first + k);
  std::sort(checked_.begin(), checked_.end());
}

// How often atomics meet at one address may depend on the data: a small sample would rank kernels by chance.
void GridRun::ExtendGroup() {
  Group& group = groups_.front();
  const std::vector<uint64_t> added =
      ExtendSample(total_, grid_.config->sample_seed, sampled_work_, &group.stratum.counted);
  std::erase_if(further_blocks_, [&](uint64_t block) {
    return std::binary_search(group.stratum.counted.begin(), group.stratum.counted.end(), block);
  });
  for (const uint64_t block : added) counts_[block] = group.counter.get();
  order_.insert(order_.end(), added.begin(), added.end());
}

Counter* GridRun::CounterOf(uint64_t index) const {
  const auto found = counts_.find(index);
  return found == counts_.end() ? nullptr : found->second;
}

void GridRun::Finish() {
  if (!counted_) return;
  LaunchResult& result = *grid_.result;
  const LaunchConfig& config = *grid_.config;
  const bool known = result.status == LaunchStatus::kCompleted && result.work.size() == total_;
  if (!known) result.work.clear();
  const std::vector<uint64_t>& work = known ? result.work : planned_work_;
  for (const Group& group : groups_)
    if (!all_ && group.counter->DataSlack() > kMostDataSlack) result.must_run_whole = true;
  if (groups_.size() == 1) {
    Group& group = groups_.front();
    result.counts = group.counter->Finish();
    if (known) result.sample_stands = StandsForAll(group.stratum.counted, work, {});
    if (!work.empty()) ScaleToMean(group.stratum.counted, work, &result.counts);
  } else {
    for (Group& group : groups_) {
      Counts counts = group.counter->Finish();
      const double each = static_cast<double>(group.stratum.blocks) / static_cast<double>(counts.sampled_blocks);
      counts.Scale(group.stratum.weight);
      counts.sampled_blocks = counts.grid_blocks;
      for (BlockLatency& latency : counts.latency) latency.weight = each;
      if (&group == &groups_.front()) {
        result.counts = std::move(counts);
      } else {
        result.counts.Add(counts);
      }
    }
  }
  double waited = 0;
  if (waits_ && result.blocks_run > 0) {
    const double scale = static_cast<double>(total_) / static_cast<double>(result.blocks_run);
    waited = waits_->Cycles(scale, static_cast<double>(config.resident_blocks * config.block.Count()));
  }
  result.counts.waited_cycles = waited;
  if (!work.empty()) result.counts.busiest_blocks = BusiestBlocks(work, config.multiprocessors);
  if (config.find_stored && result.status == LaunchStatus::kCompleted && !result.must_run_whole &&
      result.blocks_run < total_)
    result.stored = StoredByGrid(grid_);
  // Blocks that were chosen by the work of all represent them better than a few do.
  if (!further_ || result.further_failed || groups_.size() > 1) return;
  result.further = further_->Finish();
  result.further.waited_cycles = waited;
  if (!work.empty()) ScaleToMean(further_blocks_, work, &result.further);
}

}  // namespace kgrpo::simt
