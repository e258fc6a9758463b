// Counts of a launch for the time model, apart from memory accesses (counter_memory.cc).
#include "simt/time/counter.h"

#include <sys/mman.h>

#include <algorithm>

#include "simt/lower/cost.h"
#include "simt/state/handlers.h"

namespace kgrpo::simt {

Counter::Counter(Grid& grid)
    : grid_(grid),
      code_(TowardsMachineCode(*grid.kernel)),
      executed_(grid.kernel->code.size(), 0),
      lanes_(grid.kernel->code.size(), 0),
      repeats_(grid.kernel->code.size(), 0),
      demands_(grid.kernel->code.size()),
      leader_aligned_(grid.kernel->code.size(), 0),
      bank_conflicts_(grid.kernel->code.size()),
      scoreboard_(*grid.kernel, code_.costs, grid.config->latencies),
      chain_(grid.kernel->code.size(), 0),
      most_traced_(std::min(kMostTraced, kMostTracedOfBlock / grid.warps_per_block)) {
  counts_.kernel = grid.kernel->name;
  counts_.grid_blocks = grid.config->grid.Count();
  counts_.threads_per_block = static_cast<uint32_t>(grid.config->block.Count());
  counts_.warps_per_block = grid.warps_per_block;
  counts_.l1_share = grid.config->l1_share;
  counts_.local_bytes = grid.kernel->local_bytes;
}

Counter::~Counter() {
  for (auto& [address, array] : arrays_) {
    if (array.loaded_by != nullptr) munmap(array.loaded_by, array.sectors * 4);
    if (array.stored_by != nullptr) munmap(array.stored_by, array.sectors * 4);
    if (array.stored_bytes != nullptr) munmap(array.stored_bytes, array.sectors * 4);
    if (array.last_touch != nullptr) munmap(array.last_touch, (array.sectors + 2) * 4);
  }
}

// ---- blocks ----

void Counter::StartBlock(Block& block) {
  BlockTrace& trace = traces_[block.index];
  trace.number = ++blocks_;
  for (size_t w = 0; w < block.warps.size(); ++w) {
    trace.entries.emplace_back();
    if (spare_.empty()) continue;
    trace.entries.back().swap(spare_.back());
    trace.entries.back().clear();
    spare_.pop_back();
  }
  trace.copies.resize(block.warps.size());
  for (const double share : kL1Shares) trace.caches.emplace_back(static_cast<uint32_t>(share * grid_.config->l1_share));
  trace.stored.resize(kCombinedLines * block.warps.size());
  trace.issued_before = IssuedSoFar();
  trace_ = &trace;
}

double Counter::IssuedSoFar() const {
  double issued = 0;
  for (size_t pc = 0; pc < executed_.size(); ++pc)
    issued += static_cast<double>(executed_[pc]) * static_cast<double>(code_.costs[pc].issue);
  return issued;
}

// Returns two warps that represent the block's time, and the one that executes most if it executes much more.
std::vector<size_t> Counter::TypicalWarps(const Block& block) const {
  constexpr double kMore = 1.25;
  std::vector<size_t> warps = {0};
  if (block.warps.size() > 1) warps.push_back(block.warps.size() / 2);
  size_t most = 0;
  for (size_t w = 1; w < block.warps.size(); ++w) {
    if (block.warps[w].executed > block.warps[most].executed) most = w;
  }
  const auto executed = [&](size_t w) { return static_cast<double>(block.warps[w].executed); };
  if (executed(most) > kMore * std::max(executed(warps.front()), executed(warps.back()))) warps.push_back(most);
  return warps;
}

void Counter::CountTimes(const Warp& warp, const Instruction& in, uint32_t times) {
  // Sleeps end a third late and take 40 ns at least; none takes more than a millisecond (h200_prices.csv, "nanosleep").
  constexpr double kLate = 1.29, kShortest = 40, kLongest = 1.03e6;
  constexpr double kSplit = 6;  // cycles of a multiprocessor ("switch", "branches")
  if (in.run == &NanoSleep)
    times = static_cast<uint32_t>(std::clamp(kLate * times, kShortest, kLongest) * grid_.config->latencies.nanosecond);
  if (in.run == &Branch) {
    if (Regions::BecomesPredicate(in)) return;
    counts_.pipe[static_cast<size_t>(Pipe::kSerial)] += kSplit;
    demands_[in.index].pipe[static_cast<size_t>(Pipe::kSerial)] += kSplit;
  }
  if (code_.costs[in.index].pipe == Pipe::kSpecial) repeats_[in.index] += times - 1;
  std::vector<TraceEntry>& entries = trace_->entries[static_cast<size_t>(warp.id)];
  if (!entries.empty() && entries.back().pc == in.index) entries.back().awaits = times;
}

void Counter::ForgetSince(const Warp& warp, size_t traced) {
  std::vector<TraceEntry>& entries = trace_->entries[static_cast<size_t>(warp.id)];
  if (traced == 0 || traced > entries.size() || entries.size() == most_traced_) return;
  for (size_t i = traced; i < entries.size(); ++i) {
    const uint32_t pc = entries[i].pc;
    lanes_[pc] -= lanes_[pc] / executed_[pc]--;
  }
  entries.resize(traced);
  entries.back().awaits = 2;
}

double Counter::DataSlack() const {
  std::vector<uint64_t> most = executed_;  // by pc, had every way been taken
  for (const ControlFlow::DataBranch& branch : grid_.kernel->control.data_branches)
    for (const uint32_t pc : branch.region) most[pc] = std::max(most[pc], executed_[branch.pc]);
  double slack = 0, all = 0;
  for (size_t pc = 0; pc < executed_.size(); ++pc) {
    slack += static_cast<double>(most[pc] - executed_[pc]) * static_cast<double>(code_.costs[pc].issue);
    all += static_cast<double>(executed_[pc]) * static_cast<double>(code_.costs[pc].issue);
  }
  return slack / std::max(1.0, all);
}

void Counter::FinishBlock(Block& block, uint64_t counted) {
  BlockTrace& trace = *trace_;
  for (const Stored& stored : trace.stored) Send(stored);
  const Latencies& latencies = grid_.config->latencies;
  BlockLatency longest;
  double longest_cycles = 0;
  for (const size_t w : TypicalWarps(block)) {
    if (trace.entries[w].empty()) continue;
    std::fill(chain_.begin(), chain_.end(), 0);
    BlockLatency time = scoreboard_.Time(trace.entries[w], trace.copies[w], &chain_);
    const auto traced = static_cast<double>(trace.entries[w].size());
    const double scale =
        trace.entries[w].size() < most_traced_ ? 1 : static_cast<double>(block.warps[w].executed) / traced;
    for (size_t pc = 0; pc < chain_.size(); ++pc) demands_[pc].chain += chain_[pc] * scale;
    for (LatencyPath* path : {&time.hit, &time.miss, &time.fetched}) {
      path->issue *= scale;
      for (double& steps : path->steps) steps *= scale;
    }
    time.instructions *= scale;
    if (const double cycles = time.miss.Cycles(latencies); cycles > longest_cycles) {
      longest = time;
      longest_cycles = cycles;
    }
  }
  counts_.latency.push_back(longest);
  counts_.block_issued.push_back(IssuedSoFar() - trace.issued_before);
  for (const Warp& warp : block.warps) {
    counts_.divergent_branches += static_cast<double>(warp.splits);
    work_ += static_cast<double>(warp.executed);
  }
  counted_work_ += static_cast<double>(counted);
  ++counts_.sampled_blocks;
  for (std::vector<TraceEntry>& entries : trace.entries) spare_.push_back(std::move(entries));
  traces_.erase(block.index);
  trace_ = nullptr;
}

Counts Counter::Finish() {
  // Each part of threadIdx that the kernel reads takes a wavefront a warp. The first instruction stands for it.
  const auto parts =
      std::count_if(grid_.kernel->specials.begin(), grid_.kernel->specials.end(), [](const SpecialSlot& slot) {
        return slot.kind == SpecialSlot::Kind::kTidX || slot.kind == SpecialSlot::Kind::kTidY ||
               slot.kind == SpecialSlot::Kind::kTidZ;
      });
  counts_.exchange_wavefronts = static_cast<double>(parts) * counts_.warps_per_block * static_cast<double>(blocks_);
  demands_.front().exchange_wavefronts = counts_.exchange_wavefronts;
  for (size_t pc = 0; pc < executed_.size(); ++pc) {
    const auto times = static_cast<double>(executed_[pc]);
    const Cost& cost = code_.costs[pc];
    counts_.issued += times * static_cast<double>(cost.issue);
    counts_.thread_instructions += static_cast<double>(lanes_[pc]) * static_cast<double>(cost.issue);
    AddPipes(cost, times + static_cast<double>(repeats_[pc]), counts_.pipe);
    if (!cost.priced && times > 0) {
      counts_.unpriced += times * static_cast<double>(cost.issue);
      counts_.unpriced_line = grid_.kernel->lines[pc].line;
    }
    if (Exchanges(cost)) counts_.exchange_wavefronts += times;
    if (grid_.kernel->code[pc].run == &Barrier) counts_.barriers += times;
    if (grid_.kernel->code[pc].run == &Branch) counts_.branches += times;
    if (cost.pipe == Pipe::kTensor) counts_.tensor_flops += times * grid_.kernel->tensor_flops[pc];
  }
  // Merged loads were issued as one.
  counts_.issued -= counts_.merged_loads;
  counts_.pipe[static_cast<size_t>(Pipe::kMemory)] -= counts_.merged_loads;
  FindBusiestAtomics();
  for (auto& [address, array] : arrays_) counts_.arrays.push_back(array.traffic);
  CountLines();
  if (counted_work_ > 0 && counted_work_ < work_) counts_.Scale(work_ / counted_work_);
  return counts_;
}

const char* PipeName(Pipe pipe) {
  constexpr std::array<const char*, static_cast<size_t>(Pipe::kCount)> kNames = {
      "fp32", "int", "half", "fp64", "special", "memory", "tensor", "control", "serial"};
  return kNames[static_cast<size_t>(pipe)];
}

}  // namespace kgrpo::simt
