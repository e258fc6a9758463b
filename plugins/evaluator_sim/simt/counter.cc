#include "evaluator_sim/simt/counter.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <unordered_set>

#include "evaluator_sim/simt/cost.h"
#include "evaluator_sim/simt/handlers.h"

namespace kgrpo::simt {
namespace {

constexpr uint64_t kSector = 32, kLine = 128;
// Atomic additions of floats to shared memory, in turns of an integer's: alone, and where lanes meet at one address. To
// global memory: how much longer than an integer's the L2 is busy. Measured on an H100.
constexpr double kFloatAtomicRound = 3.3, kFloatAtomicContended = 11.7, kFloatAtomicFactor = 2.35;

uint32_t* MapWords(uint64_t count) {
  void* data = mmap(nullptr, count * 4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  return static_cast<uint32_t*>(data);
}

}  // namespace

uint32_t SectorCache::Read(uint64_t line, uint32_t wanted) {
  Entry* set = &entries_[(line ^ (line >> 9)) % sets_ * kWays];
  Entry* victim = set;
  ++clock_;
  for (uint32_t w = 0; w < kWays; ++w) {
    if (set[w].line == line) {
      const uint32_t missing = wanted & ~set[w].sectors;
      set[w].sectors |= wanted;
      set[w].used = clock_;
      return missing;
    }
    if (set[w].used < victim->used) victim = &set[w];
  }
  *victim = {line, clock_, wanted};
  return wanted;
}

Counter::Counter(Grid& grid)
    : grid_(grid),
      costs_(grid.kernel->costs),
      executed_(grid.kernel->code.size(), 0),
      lanes_(grid.kernel->code.size(), 0),
      merged_into_wide_(grid.kernel->code.size(), 0),
      merged_leader_(grid.kernel->code.size(), 0),
      leader_aligned_(grid.kernel->code.size(), 0),
      bank_conflicts_(grid.kernel->code.size()),
      scoreboard_(*grid.kernel, costs_, grid.config->latencies) {
  counts_.kernel = grid.kernel->name;
  counts_.grid_blocks = grid.config->grid.Count();
  counts_.threads_per_block = static_cast<uint32_t>(grid.config->block.Count());
  counts_.warps_per_block = grid.warps_per_block;
  MergeInstructions();
}

Counter::~Counter() {
  for (auto& [address, array] : arrays_) {
    if (array.loaded_by != nullptr) munmap(array.loaded_by, array.sectors * 4);
    if (array.stored_by != nullptr) munmap(array.stored_by, array.sectors * 4);
    if (array.stored_bytes != nullptr) munmap(array.stored_bytes, array.sectors * 4);
  }
}

// ---- from PTX towards machine code ----

void Counter::MergeInstructions() {
  for (const BasicBlock& block : grid_.kernel->blocks) MergeSharedLoads(block);
  FuseAddresses();
}

// ptxas makes one 8- or 16-byte load of neighbouring 4-byte loads of shared memory where it can prove them aligned.
void Counter::MergeSharedLoads(const BasicBlock& block) {
  const Kernel& kernel = *grid_.kernel;
  std::map<std::pair<uint32_t, int64_t>, uint32_t>
      found;  // (base register, offset) -> pc, since the last store or barrier
  auto flush = [&] {
    for (auto it = found.begin(); it != found.end();) {
      const auto [base, offset] = it->first;
      uint32_t run = 1;
      for (auto next = std::next(it);
           next != found.end() && next->first == std::pair{base, offset + 4 * static_cast<int64_t>(run)} && run < 4;
           ++next)
        ++run;
      const uint32_t width = run >= 4 ? 4 : run >= 2 ? 2 : 1;
      const uint32_t leader = it->second;
      if (width > 1) {
        merged_into_wide_[leader] = static_cast<uint8_t>(4 * width);
        for (uint32_t i = 0; i < width; ++i) merged_leader_[std::next(it, i)->second] = leader + 1;
      }
      std::advance(it, width);
    }
    found.clear();
  };
  for (uint32_t pc = block.first; pc < block.last; ++pc) {
    const Instruction& in = kernel.code[pc];
    const auto latency = static_cast<LatencyClass>(kernel.costs[pc].latency);
    if (latency == LatencyClass::kShared && in.size == 4 && in.count == 1 && in.predicate < 0) {
      uint32_t base = UINT32_MAX;
      for (uint32_t m = kernel.mention_start[pc]; m < kernel.mention_start[pc + 1]; ++m) {
        if ((kernel.mentions[m] & 1u) == 0) base = kernel.mentions[m] / 2;
      }
      if (base != UINT32_MAX) found.emplace(std::pair{base, in.offset}, pc);
    } else if (latency == LatencyClass::kBarrier ||
               (kernel.costs[pc].pipe == Pipe::kMemory && latency == LatencyClass::kNone)) {
      flush();
    }
  }
  flush();
}

// A 64-bit addition of an index that mul.wide has just scaled is one multiply-add.
void Counter::FuseAddresses() {
  const Kernel& kernel = *grid_.kernel;
  std::vector<uint32_t> uses(kernel.virtual_registers, 0);
  std::vector<int32_t> made_by(kernel.virtual_registers, -1);
  for (uint32_t pc = 0; pc < kernel.code.size(); ++pc) {
    for (uint32_t m = kernel.mention_start[pc]; m < kernel.mention_start[pc + 1]; ++m) {
      if ((kernel.mentions[m] & 1u) == 0) ++uses[kernel.mentions[m] / 2];
    }
  }
  for (uint32_t pc = 0; pc < kernel.code.size(); ++pc) {
    const Cost& cost = kernel.costs[pc];
    if (cost.pipe == Pipe::kInt && cost.issue == 2) {
      for (uint32_t m = kernel.mention_start[pc]; m < kernel.mention_start[pc + 1]; ++m) {
        const uint32_t reg = kernel.mentions[m] / 2;
        if ((kernel.mentions[m] & 1u) == 0 && made_by[reg] >= 0 && uses[reg] <= 4) {
          costs_[pc].issue = costs_[pc].pipe_use = 0;
          costs_[pc].latency = static_cast<uint8_t>(LatencyClass::kNone);
        }
      }
    }
    for (uint32_t m = kernel.mention_start[pc]; m < kernel.mention_start[pc + 1]; ++m) {
      if ((kernel.mentions[m] & 1u) != 0)
        made_by[kernel.mentions[m] / 2] = kernel.is_wide_product[pc] != 0 ? static_cast<int32_t>(pc) : -1;
    }
  }
}

// ---- blocks ----

void Counter::StartBlock(Block& block) {
  BlockTrace& trace = traces_[block.index];
  trace.number = ++blocks_;
  trace.warps = {0};
  if (block.warps.size() > 1) trace.warps.push_back(static_cast<int>(block.warps.size() / 2));
  trace.entries.resize(trace.warps.size());
  trace.executed.resize(trace.warps.size());
  for (const uint32_t bytes : kL1Shares) trace.caches.emplace_back(bytes);
  trace.issued_before = IssuedSoFar();
  trace_ = &trace;
}

double Counter::IssuedSoFar() const {
  double issued = 0;
  for (size_t pc = 0; pc < executed_.size(); ++pc)
    issued += static_cast<double>(executed_[pc]) * static_cast<double>(costs_[pc].issue);
  return issued;
}

void Counter::FinishBlock(Block& block) {
  BlockTrace& trace = *trace_;
  BlockLatency longest;
  for (size_t i = 0; i < trace.entries.size(); ++i) {
    if (trace.entries[i].empty()) continue;
    BlockLatency time = scoreboard_.Time(trace.entries[i]);
    const double scale = static_cast<double>(trace.executed[i]) / static_cast<double>(trace.entries[i].size());
    time.cycles_hit *= scale;
    time.cycles_miss *= scale;
    time.instructions *= scale;
    if (time.cycles_miss > longest.cycles_miss) longest = time;
  }
  counts_.latency.push_back(longest);
  counts_.block_issued.push_back(IssuedSoFar() - trace.issued_before);
  for (const Warp& warp : block.warps) counts_.divergent_branches += static_cast<double>(warp.splits);
  for (auto& [address, array] : arrays_) {
    for (const uint64_t sector : array.stored) {
      if (array.stored_bytes[sector] != kAllLanes) array.traffic.partial_store_sectors += 1;
      array.stored_bytes[sector] = 0;
    }
    array.stored.clear();
  }
  ++counts_.sampled_blocks;
  traces_.erase(block.index);
  trace_ = nullptr;
}

// ---- accesses ----

Counter::Array& Counter::ArrayOf(const Warp& warp, uint64_t address, const Access& access) {
  const Allocation* allocation = access.allocation != nullptr ? access.allocation : warp.grid->memory->Find(address);
  auto [it, added] = arrays_.try_emplace(allocation->address());
  Array& array = it->second;
  if (added) {
    array.traffic.name = allocation->name();
    array.traffic.bytes = allocation->bytes();
    array.sectors = allocation->bytes() / kSector + 1;
    array.loaded_by = MapWords(array.sectors);
    array.stored_by = MapWords(array.sectors);
    array.stored_bytes = MapWords(array.sectors);
  }
  return array;
}

void Counter::CountAccess(Warp& warp, const Instruction& in, uint32_t mask, const Access& access, AccessKind kind) {
  if (access.space == Space::kShared) {
    CountShared(warp, in, mask, access, kind);
  } else if (access.space == Space::kLocal) {
    if (costs_[in.index].issue > 0) counts_.local_sectors += std::popcount(mask) * access.bytes / 32.0;
  } else if (access.space == Space::kGlobal &&
             static_cast<LatencyClass>(grid_.kernel->costs[in.index].latency) != LatencyClass::kConstant) {
    CountGlobal(warp, in, mask, access, kind);
  }
}

uint32_t Counter::SharedWavefronts(const Instruction& in, const Access& access, uint32_t mask, uint32_t bytes,
                                   bool load) {
  const uint32_t parts = std::max(1u, bytes / 4);
  if (access.pattern == Pattern::kContiguous && bytes == access.bytes) return parts;
  if (access.pattern == Pattern::kUniform && parts == 1) return 1;
  const uint32_t wavefronts = bank_conflicts_.Wavefronts(in.index, access.address, mask, bytes);
  // A load returns 128 bytes a cycle to the registers, however few different ones it reads.
  return load ? std::max(wavefronts, parts) : wavefronts;
}

void Counter::CountShared(const Warp&, const Instruction& in, uint32_t mask, const Access& access, AccessKind kind) {
  counts_.shared_requests += 1;
  if (kind == AccessKind::kAtomic) {
    // Lanes at one address take turns.
    uint64_t addresses[kLanes];
    uint32_t count = 0;
    for (uint32_t m = mask; m != 0; m &= m - 1) addresses[count++] = access.address[std::countr_zero(m)];
    std::sort(addresses, addresses + count);
    uint32_t most = 0;
    for (uint32_t i = 0, run = 0; i < count; ++i) {
      run = i > 0 && addresses[i] == addresses[i - 1] ? run + 1 : 1;
      most = std::max(most, run);
    }
    // Integers are added in place. Floats are added by a loop that compares and swaps: each lane at one address needs a
    // round.
    double turns = std::max(most, BankCycles(access.address, mask, access.bytes));
    if (grid_.kernel->float_atomic[in.index] != 0)
      turns = most == 1 ? kFloatAtomicRound * turns : kFloatAtomicContended * most;
    counts_.shared_atomic_wavefronts +=
        grid_.kernel->uniform_address[in.index] != 0 && grid_.kernel->float_atomic[in.index] == 0 ? 1 : turns;
    return;
  }
  // A load that is part of a merged one costs what its share of the vector costs.
  const uint32_t leader = merged_leader_[in.index];
  if (leader != 0) {
    const uint32_t width = merged_into_wide_[leader - 1];
    if (leader - 1 == in.index) {
      bool aligned = true;
      for (uint32_t m = mask; m != 0; m &= m - 1) aligned &= access.address[std::countr_zero(m)] % width == 0;
      leader_aligned_[in.index] = aligned ? 1 : 0;
      if (aligned) {
        counts_.shared_wavefronts += SharedWavefronts(in, access, mask, width, true);
        counts_.shared_ideal_wavefronts += (std::popcount(mask) * width + 127) / 128;
        return;
      }
    } else if (leader_aligned_[leader - 1] != 0) {
      counts_.shared_requests -= 1;
      counts_.merged_loads += 1;
      return;
    }
  }
  counts_.shared_wavefronts += SharedWavefronts(in, access, mask, access.bytes, kind == AccessKind::kLoad);
  counts_.shared_ideal_wavefronts += (static_cast<uint32_t>(std::popcount(mask)) * access.bytes + 127) / 128;
}

void Counter::CountGlobal(Warp& warp, const Instruction& in, uint32_t mask, const Access& access, AccessKind kind) {
  Array& array = ArrayOf(warp, access.address[std::countr_zero(mask)], access);
  ArrayTraffic& traffic = array.traffic;
  BlockTrace& trace = *trace_;
  // The sectors touched, as (line, four bits), per part of the warp that is served in one go.
  const uint32_t parts = std::max(1u, access.bytes / 4), width = kLanes / parts;
  struct Touched {
    uint64_t line;
    uint32_t sectors;
  };
  Touched touched[kLanes * 2];
  uint32_t count = 0, wavefronts = 0;
  for (uint32_t p = 0; p < parts; ++p) {
    const uint32_t start = count;
    const uint32_t part = mask & ((width == 32 ? kAllLanes : ((1u << width) - 1)) << (p * width));
    for (uint32_t m = part; m != 0; m &= m - 1) {
      const uint64_t address = access.address[std::countr_zero(m)];
      const uint64_t line = address / kLine;
      const uint32_t first = static_cast<uint32_t>(address % kLine / kSector);
      uint32_t found = start;
      while (found < count && touched[found].line != line) ++found;
      if (found == count) touched[count++] = {line, 0};
      touched[found].sectors |= 1u << first;
    }
    wavefronts += count - start;
  }
  // Parts that touch the same line share its sectors beyond the L1.
  uint32_t lines = 0;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t found = 0;
    while (found < lines && touched[found].line != touched[i].line) ++found;
    if (found == lines) {
      touched[lines++] = touched[i];
    } else {
      touched[found].sectors |= touched[i].sectors;
    }
  }
  uint32_t sectors = 0;
  for (uint32_t i = 0; i < lines; ++i) sectors += static_cast<uint32_t>(std::popcount(touched[i].sectors));
  const double ideal = (static_cast<uint32_t>(std::popcount(mask)) * access.bytes + 31) / 32;
  const DeviceAddress start = access.allocation != nullptr
                                  ? access.allocation->address()
                                  : warp.grid->memory->Find(access.address[std::countr_zero(mask)])->address();
  if (kind == AccessKind::kAtomic) {
    traffic.atomic_requests += 1;
    traffic.atomic_sectors += sectors;
    counts_.global_atomic_operations += sectors;
    // Integers at an address that the compiler knows to be the same for the warp are summed within the warp first.
    const bool is_float = grid_.kernel->float_atomic[in.index] != 0;
    if (!is_float && grid_.kernel->uniform_address[in.index] != 0) {
      atomic_addresses_[access.address[std::countr_zero(mask)]] += 1;
    } else {
      for (uint32_t m = mask; m != 0; m &= m - 1)
        atomic_addresses_[access.address[std::countr_zero(m)]] += is_float ? kFloatAtomicFactor : 1;
    }
    return;
  }
  counts_.l1_wavefronts += wavefronts;
  const bool load = kind == AccessKind::kLoad;
  (load ? traffic.load_requests : traffic.store_requests) += 1;
  (load ? traffic.load_sectors : traffic.store_sectors) += sectors;
  (load ? traffic.load_ideal_sectors : traffic.store_ideal_sectors) += ideal;
  const bool bypass = (in.flags & kFlagBypassL1) != 0;
  bool beyond = false;
  for (uint32_t i = 0; i < lines; ++i) {
    if (load) {
      for (size_t c = 0; c < kL1Shares.size(); ++c) {
        const uint32_t missing =
            bypass ? touched[i].sectors : trace.caches[c].Read(touched[i].line, touched[i].sectors);
        traffic.l1_miss_sectors[c] += std::popcount(missing);
        beyond |= c == 1 && missing != 0;
      }
    }
    uint32_t* by = load ? array.loaded_by : array.stored_by;
    for (uint32_t s = 0; s < 4; ++s) {
      if (((touched[i].sectors >> s) & 1u) == 0) continue;
      const uint64_t address = touched[i].line * kLine + s * kSector;
      const uint64_t sector = address < start ? 0 : (address - start) / kSector;
      if (sector >= array.sectors || by[sector] == trace.number) continue;
      (load ? traffic.all_load_sectors : traffic.all_store_sectors) += by[sector] == 0 ? 1 : 0;
      (load ? traffic.unique_load_sectors : traffic.unique_store_sectors) += 1;
      by[sector] = trace.number;
    }
  }
  if (!load) {
    // Sectors that this instruction fills only in part.
    traffic.store_partial_sectors +=
        std::max(0.0, sectors - std::floor(static_cast<double>(std::popcount(mask)) * access.bytes / kSector));
    for (uint32_t m = mask; m != 0; m &= m - 1) {
      const uint64_t offset = access.address[std::countr_zero(m)] - start;
      const uint64_t sector = offset / kSector;
      if (array.stored_bytes[sector] == 0) array.stored.push_back(sector);
      array.stored_bytes[sector] |= static_cast<uint32_t>(((uint64_t{1} << access.bytes) - 1) << (offset % kSector));
    }
    return;
  }
  if (beyond) {
    for (size_t i = 0; i < trace.warps.size(); ++i) {
      if (trace.warps[i] == warp.id && !trace.entries[i].empty() && trace.entries[i].back().pc == in.index)
        trace.entries[i].back().beyond_l1 = true;
    }
  }
  // Warps take turns as on a GPU, or the cache would see one warp's whole loop at a time.
  if (++trace.loads >= kLoadsToYield) {
    trace.loads = 0;
    warp.yield = true;
    warp.limit = 0;
  }
}

Counts Counter::Finish() {
  for (size_t pc = 0; pc < executed_.size(); ++pc) {
    const auto times = static_cast<double>(executed_[pc]);
    const Cost& cost = costs_[pc];
    counts_.issued += times * static_cast<double>(cost.issue);
    counts_.thread_instructions += static_cast<double>(lanes_[pc]) * static_cast<double>(cost.issue);
    counts_.pipe[static_cast<size_t>(cost.pipe)] += times * static_cast<double>(cost.pipe_use);
    if (grid_.kernel->code[pc].run == &Barrier) counts_.barriers += times;
    if (grid_.kernel->code[pc].run == &Branch) counts_.branches += times;
    if (cost.pipe == Pipe::kTensor) counts_.tensor_flops += times * grid_.kernel->tensor_flops[pc];
  }
  // Merged loads were issued as one.
  counts_.issued -= counts_.merged_loads;
  counts_.pipe[static_cast<size_t>(Pipe::kMemory)] -= counts_.merged_loads;
  const double scale = counts_.sampled_blocks == 0
                           ? 0
                           : static_cast<double>(counts_.grid_blocks) / static_cast<double>(counts_.sampled_blocks);
  double hottest = 0;
  std::unordered_set<uint64_t> atomic_lines;
  for (const auto& [address, count] : atomic_addresses_) {
    hottest = std::max(hottest, count);
    atomic_lines.insert(address / kLine);
  }
  counts_.hottest_atomic_address = hottest * scale;
  counts_.atomic_lines = static_cast<double>(atomic_lines.size());
  for (auto& [address, array] : arrays_) counts_.arrays.push_back(array.traffic);
  return counts_;
}

const char* PipeName(Pipe pipe) {
  switch (pipe) {
    case Pipe::kFp32:
      return "fp32";
    case Pipe::kInt:
      return "int";
    case Pipe::kHalf:
      return "half";
    case Pipe::kFp64:
      return "fp64";
    case Pipe::kSpecial:
      return "special";
    case Pipe::kMemory:
      return "memory";
    case Pipe::kTensor:
      return "tensor";
    case Pipe::kControl:
      return "control";
    case Pipe::kCount:
      break;
  }
  return "unknown";
}

}  // namespace kgrpo::simt
