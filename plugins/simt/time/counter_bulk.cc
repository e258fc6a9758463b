// Counts bulk copies: their use of the L2 and of shared memory's data path, and when a waiting warp can go on. Part of
// the counter.
#include <algorithm>
#include <bit>

#include "simt/time/counter.h"

namespace kgrpo::simt {

// The lanes of an instruction copy one after the other, past the L1. A request is a line of 128 bytes.
void Counter::CountBulk(Warp& warp, const Instruction& in, const BulkCopy& copy, bool another) {
  constexpr uint64_t kSector = SectorCache::kSector, kLine = SectorCache::kLine;
  if (another) ++executed_[in.index];
  Access access;
  access.allocation = FindAllocation(grid_, copy.global);
  Array& array = ArrayOf(warp, copy.global, access);
  const DeviceAddress start = access.allocation->address(), end = copy.global + copy.bytes;
  bool first = false;
  double lines = 0, sectors = 0;
  for (uint64_t line = copy.global / kLine; line * kLine < end; ++line) {
    const uint64_t from = std::max(copy.global, line * kLine), to = std::min(end, (line + 1) * kLine);
    const uint64_t last = (to - 1) % kLine / kSector;
    const uint32_t touched = ((2u << last) - 1) & ~((1u << (from % kLine / kSector)) - 1);
    CountReuse(array, start, line, touched, copy.loads);
    first |= TouchSectors(array, start, line, touched, copy.loads);
    lines += 1;
    sectors += std::popcount(touched);
  }
  ArrayTraffic& traffic = array.traffic;
  const double ideal = copy.bytes / static_cast<double>(kSector);
  (copy.loads ? traffic.load_requests : traffic.store_requests) += lines;
  (copy.loads ? traffic.load_sectors : traffic.store_sectors) += sectors;
  (copy.loads ? traffic.load_ideal_sectors : traffic.store_ideal_sectors) += ideal;
  if (copy.loads) {
    for (double& missed : traffic.l1_miss_sectors) missed += sectors;
  } else {
    const double partial = (copy.global % kSector != 0 ? 1 : 0) + (end % kSector != 0 ? 1 : 0);
    traffic.store_partial_sectors += partial;
    traffic.store_partial_lines += partial;
    traffic.unique_store_bytes += copy.bytes;
    traffic.whole_store_sectors += sectors - partial;
  }
  const uint64_t rows = (copy.bytes + kLine - 1) / kLine;  // of shared memory's banks
  Demand& own = demands_[in.index];
  own.requests += lines;
  own.sectors += sectors;
  own.ideal_sectors += ideal;
  own.l2_sectors += sectors;
  for (double* figure : {&counts_.shared_requests, &counts_.shared_wavefronts, &counts_.shared_ideal_wavefronts,
                         &own.shared_requests, &own.shared_wavefronts, &own.shared_ideal_wavefronts})
    *figure += static_cast<double>(rows);
  if (!copy.loads) return;
  BlockTrace& trace = *trace_;
  if (!another) TraceCopies(in.index);
  for (std::vector<TraceCopy>& copies : trace.copies) {
    copies.back().first |= first;
    copies.back().sectors += static_cast<float>(sectors) / static_cast<float>(trace.copies.size());
  }
  trace.awaited[copy.barrier].issued = static_cast<uint32_t>(trace.copies.front().size());
}

void Counter::TraceCopies(uint32_t pc) {
  for (size_t i = 0; i < trace_->copies.size() && trace_->copies[i].size() < most_traced_; ++i)
    trace_->copies[i].push_back({static_cast<uint32_t>(trace_->entries[i].size()), pc, false, 0});
}

void Counter::CountAsyncArrival(const Instruction& in, uint32_t barrier) {
  TraceCopies(in.index);
  Awaited& awaited = trace_->awaited[barrier];
  awaited.issued = awaited.arrived = static_cast<uint32_t>(trace_->copies.front().size());
}

void Counter::CountArrival(uint32_t barrier) {
  Awaited& awaited = trace_->awaited[barrier];
  awaited.arrived = awaited.issued;
}

void Counter::ForgetPoll(const Warp& warp, const Instruction& in, uint32_t mask) {
  --executed_[in.index];
  for (double* requests : {&counts_.shared_requests, &demands_[in.index].shared_requests}) *requests -= 1;
  for (double* wavefronts : {&counts_.shared_wavefronts, &counts_.shared_ideal_wavefronts,
                             &demands_[in.index].shared_wavefronts, &demands_[in.index].shared_ideal_wavefronts})
    *wavefronts -= kMbarrierWait;
  lanes_[in.index] -= static_cast<uint32_t>(std::popcount(mask));
  std::vector<TraceEntry>& entries = trace_->entries[static_cast<size_t>(warp.id)];
  if (!entries.empty() && entries.back().pc == in.index) entries.pop_back();
}

void Counter::CountWait(const Warp& warp, const Instruction& in, uint32_t barrier) {
  const auto found = trace_->awaited.find(barrier);
  if (found == trace_->awaited.end()) return;
  std::vector<TraceEntry>& entries = trace_->entries[static_cast<size_t>(warp.id)];
  if (!entries.empty() && entries.back().pc == in.index) entries.back().awaits = found->second.arrived;
}

}  // namespace kgrpo::simt
