// Combines the counts of several groups of a launch's blocks.
#include "simt/state/counts.h"

#include <algorithm>

namespace kgrpo::simt {
namespace {

constexpr double ArrayTraffic::*kTraffic[] = {
    &ArrayTraffic::load_requests,         &ArrayTraffic::load_sectors,         &ArrayTraffic::load_ideal_sectors,
    &ArrayTraffic::store_requests,        &ArrayTraffic::store_sectors,        &ArrayTraffic::store_ideal_sectors,
    &ArrayTraffic::store_partial_sectors, &ArrayTraffic::store_partial_lines,  &ArrayTraffic::unique_store_bytes,
    &ArrayTraffic::whole_store_sectors,   &ArrayTraffic::atomic_requests,      &ArrayTraffic::atomic_sectors,
    &ArrayTraffic::unique_load_sectors,   &ArrayTraffic::unique_store_sectors, &ArrayTraffic::unique_load_pairs,
    &ArrayTraffic::all_load_sectors,      &ArrayTraffic::all_store_sectors};
constexpr double Counts::*kSums[] = {&Counts::issued,
                                     &Counts::thread_instructions,
                                     &Counts::tensor_flops,
                                     &Counts::l1_wavefronts,
                                     &Counts::local_sectors,
                                     &Counts::local_lines,
                                     &Counts::local_partial_lines,
                                     &Counts::local_partial_sectors,
                                     &Counts::constant_cycles,
                                     &Counts::unpriced,
                                     &Counts::shared_requests,
                                     &Counts::shared_wavefronts,
                                     &Counts::shared_ideal_wavefronts,
                                     &Counts::merged_loads,
                                     &Counts::shared_atomic_wavefronts,
                                     &Counts::shared_atomic_ideal_wavefronts,
                                     &Counts::exchange_wavefronts,
                                     &Counts::global_atomic_operations,
                                     &Counts::atomic_operations_by_block,
                                     &Counts::barriers,
                                     &Counts::divergent_branches,
                                     &Counts::branches};

template <typename Figures, typename F>
void ForEach(Figures& figures, F f) {
  for (double& figure : figures) f(figure);
}

template <typename F>
void ForEachFigure(ArrayTraffic& array, F f) {
  for (double ArrayTraffic::*figure : kTraffic) f(array.*figure);
  ForEach(array.l1_miss_sectors, f);
  ForEach(array.load_again, f);
  ForEach(array.store_again, f);
}

template <typename Figures>
void AddEach(Figures& to, const Figures& from) {
  for (size_t i = 0; i < to.size(); ++i) to[i] += from[i];
}

}  // namespace

Demand& Demand::operator*=(double factor) {
  for (double& figure : pipe) figure *= factor;
  for (double Demand::*figure :
       {&Demand::issued, &Demand::tensor_flops, &Demand::requests, &Demand::sectors, &Demand::ideal_sectors,
        &Demand::l1_wavefronts, &Demand::l2_sectors, &Demand::local_sectors, &Demand::shared_requests,
        &Demand::shared_wavefronts, &Demand::shared_ideal_wavefronts, &Demand::shared_atomic_wavefronts,
        &Demand::exchange_wavefronts, &Demand::atomic_operations, &Demand::chain}) {
    this->*figure *= factor;
  }
  return *this;
}

void Counts::Scale(double factor) {
  const auto scale = [factor](double& figure) { figure *= factor; };
  for (double Counts::*figure : kSums) scale(this->*figure);
  ForEach(pipe, scale);
  for (ArrayTraffic& array : arrays) ForEachFigure(array, scale);
  for (LineDemand& line : lines) line *= factor;
}

void Counts::Add(const Counts& other) {
  grid_blocks += other.grid_blocks;
  sampled_blocks += other.sampled_blocks;
  for (double Counts::*figure : kSums) this->*figure += other.*figure;
  AddEach(pipe, other.pipe);
  // Assumes that the busiest L2 unit is the same in both.
  busiest_atomic_turns += other.busiest_atomic_turns;
  fewer_atomic_turns.by_warp += other.fewer_atomic_turns.by_warp;
  fewer_atomic_turns.by_block += other.fewer_atomic_turns.by_block;
  fewer_atomic_turns.of_a_block = std::max(fewer_atomic_turns.of_a_block, other.fewer_atomic_turns.of_a_block);
  for (const ArrayTraffic& array : other.arrays) {
    const auto mine = std::find_if(arrays.begin(), arrays.end(),
                                   [&](const ArrayTraffic& one) { return one.address == array.address; });
    if (mine == arrays.end()) {
      arrays.push_back(array);
      continue;
    }
    for (double ArrayTraffic::*figure : kTraffic) (*mine).*figure += array.*figure;
    mine->low = std::min(mine->low, array.low);
    mine->high = std::max(mine->high, array.high);
    AddEach(mine->l1_miss_sectors, array.l1_miss_sectors);
    AddEach(mine->load_again, array.load_again);
    AddEach(mine->store_again, array.store_again);
  }
  std::sort(arrays.begin(), arrays.end(),
            [](const ArrayTraffic& a, const ArrayTraffic& b) { return a.address < b.address; });
  latency.insert(latency.end(), other.latency.begin(), other.latency.end());
  block_issued.insert(block_issued.end(), other.block_issued.begin(), other.block_issued.end());
  for (size_t i = 0; i < lines.size() && i < other.lines.size(); ++i) lines[i] += other.lines[i];
}

}  // namespace kgrpo::simt
