// Counts memory accesses: what they ask of the shared memory's banks, the L1, and the memory beyond.
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>

#include "simt/lower/cost.h"
#include "simt/time/counter.h"

namespace kgrpo::simt {
namespace {

constexpr uint64_t kSector = SectorCache::kSector, kLine = SectorCache::kLine;

uint32_t* MapWords(uint64_t count) {
  void* data = mmap(nullptr, count * 4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  return static_cast<uint32_t*>(data);
}

// Returns the units of `unit` bytes that would hold the accesses of `mask`'s lanes, `bytes` each.
uint32_t UnitsOf(uint32_t mask, uint32_t bytes, uint32_t unit) {
  return (static_cast<uint32_t>(std::popcount(mask)) * bytes + unit - 1) / unit;
}

// Sectors of a line that an access touches: four bits.
struct Touched {
  uint64_t line;
  uint32_t sectors;
};
struct Coalesced {
  uint32_t lines;       // in `touched`
  uint32_t wavefronts;  // of the L1: lines touched, summed over the parts of the warp served in one go
};

Coalesced Coalesce(const Access& access, uint32_t mask, bool load, Touched (&touched)[kLanes * 2]) {
  // The L1 and shared memory are one memory, and return what they load alike.
  const uint32_t parts = load ? ReturnCycles(access.address, mask, access.bytes) : std::max(1u, access.bytes / 4);
  const uint32_t width = kLanes / parts;
  uint32_t count = 0, wavefronts = 0;
  for (uint32_t p = 0; p < parts; ++p) {
    const uint32_t start = count;
    const uint32_t part = mask & ((width == 32 ? kAllLanes : ((1u << width) - 1)) << (p * width));
    for (const int lane : EachBit(part)) {
      const uint64_t address = access.address[lane];
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
  return {lines, wavefronts};
}

}  // namespace

Counter::Array& Counter::ArrayOf(const Warp& warp, uint64_t address, const Access& access) {
  const Allocation* allocation = access.allocation != nullptr ? access.allocation : warp.grid->memory->Find(address);
  auto [it, added] = arrays_.try_emplace(allocation->address());
  Array& array = it->second;
  if (added) {
    array.traffic.name = allocation->name();
    array.traffic.address = allocation->address();
    array.traffic.bytes = allocation->bytes();
    array.sectors = allocation->bytes() / kSector + 1;
    array.loaded_by = MapWords(array.sectors);
    array.stored_by = MapWords(array.sectors);
    array.stored_bytes = MapWords(array.sectors);
    array.last_touch = MapWords(array.sectors + 2);
  }
  return array;
}

void Counter::CountAccess(Warp& warp, const Instruction& in, uint32_t mask, const Access& access, AccessKind kind) {
  if (access.space == Space::kShared) {
    // All that CountShared and its callees add to the totals belongs to this instruction.
    const Counts& sum = counts_;
    Demand& own = demands_[in.index];
    own.shared_requests -= sum.shared_requests;
    own.shared_wavefronts -= sum.shared_wavefronts;
    own.shared_ideal_wavefronts -= sum.shared_ideal_wavefronts;
    own.shared_atomic_wavefronts -= sum.shared_atomic_wavefronts;
    CountShared(in, mask, access, kind);
    own.shared_requests += sum.shared_requests;
    own.shared_wavefronts += sum.shared_wavefronts;
    own.shared_ideal_wavefronts += sum.shared_ideal_wavefronts;
    own.shared_atomic_wavefronts += sum.shared_atomic_wavefronts;
  } else if (access.space == Space::kLocal) {
    if (code_.costs[in.index].issue != 0) CountLocal(warp, in, mask, access, kind);
  } else if (static_cast<LatencyClass>(grid_.kernel->costs[in.index].latency) == LatencyClass::kConstant) {
    if (access.pattern != Pattern::kUniform) CountConstant(warp, in, mask, access);
  } else if (access.space == Space::kGlobal) {
    CountGlobal(warp, in, mask, access, kind);
  }
}

// Words of the same index lie side by side for the lanes of a warp: lanes at other indices touch other lines.
void Counter::CountLocal(const Warp& warp, const Instruction& in, uint32_t mask, const Access& access,
                         AccessKind kind) {
  constexpr uint64_t kPlace = uint64_t{1} << 48;  // above the lines of global memory
  const bool load = kind == AccessKind::kLoad;
  Demand& own = demands_[in.index];
  bool beyond = false;
  for (uint32_t left = mask; left != 0;) {
    const uint64_t index = access.address[std::countr_zero(left)] / 4;
    uint32_t lanes = 0;
    for (const int l : EachBit(left)) lanes |= access.address[l] / 4 == index ? 1u << l : 0;
    left &= ~lanes;
    uint32_t touched = 0, whole = 0;  // sectors of eight lanes
    for (uint32_t s = 0; s < 4; ++s) {
      const uint32_t of_sector = lanes >> (8 * s) & 0xFF;
      touched |= (of_sector != 0 ? 1u : 0u) << s;
      whole |= (of_sector == 0xFF ? 1u : 0u) << s;
    }
    for (uint32_t word = 0; word < std::max(1u, access.bytes / 4); ++word) {
      const uint64_t line = kPlace + ((static_cast<uint64_t>(warp.id) << 32) | (index + word));
      // A store stays in the L1 for later loads, and takes twice its sectors at the L2 (h200_prices.csv, "local").
      uint32_t missed = 0;
      for (size_t c = 0; c < kL1Shares.size(); ++c) {
        const uint32_t missing = trace_->caches[c].Read(line, touched);
        if (c == 1) missed = missing;
      }
      beyond |= load && missed != 0;
      const int sent = load ? std::popcount(missed) : 2 * std::popcount(touched);
      counts_.local_lines += 1;
      counts_.local_sectors += sent;
      own.local_sectors += sent;
      if (load || touched == whole) continue;
      counts_.local_partial_lines += 1;
      counts_.local_partial_sectors += std::popcount(touched & ~whole);
    }
  }
  if (beyond) MarkBeyondL1(warp, in, false);
}

// Lanes that read different words are served one after the other, and slower from a table that the cache of a
// multiprocessor does not hold (h200_prices.csv, "constant").
void Counter::CountConstant(const Warp& warp, const Instruction& in, uint32_t mask, const Access& access) {
  constexpr uint32_t kFew = 4;
  constexpr uint64_t kSmall = 4096, kLarge = 12288;  // bytes
  constexpr double kCycles = 2, kCyclesOfLarger = 6, kCyclesOfLarge = 28;
  uint32_t words = 0;
  for (uint32_t left = mask; left != 0; ++words) {
    const uint64_t word = access.address[std::countr_zero(left)] / 4;
    for (const int l : EachBit(left)) left &= access.address[l] / 4 == word ? ~(1u << l) : kAllLanes;
  }
  const uint64_t bytes = access.allocation != nullptr ? access.allocation->bytes() : 0;
  const double each = bytes <= kSmall ? kCycles : bytes <= kLarge ? kCyclesOfLarger : kCyclesOfLarge;
  counts_.constant_cycles += kCycles * (std::min(words, kFew) - 1) + each * (words - std::min(words, kFew));
  CountTimes(warp, in, words);
}

void Counter::MarkBeyondL1(const Warp& warp, const Instruction& in, bool first) {
  std::vector<TraceEntry>& entries = trace_->entries[static_cast<size_t>(warp.id)];
  if (entries.empty() || entries.back().pc != in.index) return;
  entries.back().beyond_l1 = 1;
  entries.back().first |= first ? 1u : 0u;
}

uint32_t Counter::SharedWavefronts(const Instruction& in, const Access& access, uint32_t mask, uint32_t bytes,
                                   bool load) {
  const uint32_t parts = std::max(1u, bytes / 4);
  if (access.pattern == Pattern::kContiguous && bytes == access.bytes) return parts;
  if (access.pattern == Pattern::kUniform && parts == 1) return 1;
  return bank_conflicts_.Wavefronts(in.index, access.address, mask, bytes, load);
}

// Lanes that share addresses may take fewer wavefronts than their bytes would. A single lane cannot have conflicts.
void Counter::AddSharedWavefronts(const Instruction& in, const Access& access, uint32_t mask, uint32_t bytes,
                                  bool load) {
  const uint32_t wavefronts = SharedWavefronts(in, access, mask, bytes, load);
  counts_.shared_wavefronts += wavefronts;
  counts_.shared_ideal_wavefronts +=
      std::popcount(mask) == 1 ? wavefronts : std::min(wavefronts, UnitsOf(mask, bytes, 128));
}

void Counter::CountShared(const Instruction& in, uint32_t mask, const Access& access, AccessKind kind) {
  counts_.shared_requests += 1;
  if (kind == AccessKind::kAtomic) return CountSharedAtomic(in, mask, access);
  if (code_.merged_leader[in.index] != 0 && CountMergedLoad(in, mask, access)) return;
  AddSharedWavefronts(in, access, mask, access.bytes, kind == AccessKind::kLoad);
}

// Counts a load that ptxas merges into a vector load: the leader costs as much as the vector, the others nothing.
// Returns false if the leader is not aligned to the vector: then the load is not merged.
bool Counter::CountMergedLoad(const Instruction& in, uint32_t mask, const Access& access) {
  const uint32_t leader = code_.merged_leader[in.index];
  const uint32_t width = code_.merged_into_wide[leader - 1];
  if (leader - 1 == in.index) {
    bool aligned = true;
    for (const int l : EachBit(mask)) aligned &= access.address[l] % width == 0;
    leader_aligned_[in.index] = aligned ? 1 : 0;
    if (aligned) {
      AddSharedWavefronts(in, access, mask, width, true);
      return true;
    }
  } else if (leader_aligned_[leader - 1] != 0) {
    counts_.shared_requests -= 1;
    counts_.merged_loads += 1;
    return true;
  }
  return false;
}

// Records loads of or stores to `sectors` (4 bits) of a line. Returns true if any is new to the block.
bool Counter::TouchSectors(Array& array, DeviceAddress start, uint64_t line, uint32_t sectors, bool load) {
  ArrayTraffic& traffic = array.traffic;
  uint32_t* by = load ? array.loaded_by : array.stored_by;
  bool first = false;
  for (uint32_t s = 0; s < 4; ++s) {
    if (((sectors >> s) & 1u) == 0) continue;
    const uint64_t address = line * kLine + s * kSector;
    const uint64_t sector = address < start ? 0 : (address - start) / kSector;
    if (sector >= array.sectors || by[sector] == trace_->number) continue;
    first |= array.stored_by[sector] != trace_->number;
    (load ? traffic.all_load_sectors : traffic.all_store_sectors) += by[sector] == 0 ? 1 : 0;
    (load ? traffic.unique_load_sectors : traffic.unique_store_sectors) += 1;
    by[sector] = trace_->number;
    traffic.low = std::min(traffic.low, sector * kSector);
    traffic.high = std::max(traffic.high, std::min(traffic.bytes, (sector + 1) * kSector));
  }
  return first;
}

void Counter::CountGlobal(Warp& warp, const Instruction& in, uint32_t mask, const Access& access, AccessKind kind) {
  Array& array = ArrayOf(warp, access.address[std::countr_zero(mask)], access);
  ArrayTraffic& traffic = array.traffic;
  BlockTrace& trace = *trace_;
  Touched touched[kLanes * 2];
  const auto [lines, wavefronts] = Coalesce(access, mask, kind == AccessKind::kLoad, touched);
  uint32_t sectors = 0;
  for (uint32_t i = 0; i < lines; ++i) sectors += static_cast<uint32_t>(std::popcount(touched[i].sectors));
  const double ideal = UnitsOf(mask, access.bytes, 32);
  const DeviceAddress start = access.allocation != nullptr
                                  ? access.allocation->address()
                                  : warp.grid->memory->Find(access.address[std::countr_zero(mask)])->address();
  Demand& own = demands_[in.index];
  if (kind == AccessKind::kAtomic) {
    traffic.atomic_requests += 1;
    traffic.atomic_sectors += sectors;
    counts_.global_atomic_operations += sectors;
    own.atomic_operations += sectors;
    own.l2_sectors += sectors;
    CountGlobalAtomic(in, mask, access, start);
    return;
  }
  counts_.l1_wavefronts += wavefronts;
  const bool load = kind == AccessKind::kLoad;
  (load ? traffic.load_requests : traffic.store_requests) += 1;
  const uint32_t sent = load ? sectors : CountStored(array, start, mask, access);
  if (load) traffic.load_sectors += sent;
  (load ? traffic.load_ideal_sectors : traffic.store_ideal_sectors) += ideal;
  own.l1_wavefronts += wavefronts;
  own.requests += 1;
  own.sectors += sent;
  own.ideal_sectors += ideal;
  if (!load) own.l2_sectors += sent;
  const bool bypass = (in.flags & kFlagBypassL1) != 0;
  bool beyond = false, first = false;
  for (uint32_t i = 0; i < lines; ++i) {
    if (load) {
      for (size_t c = 0; c < kL1Shares.size(); ++c) {
        const uint32_t missing =
            bypass ? touched[i].sectors : trace.caches[c].Read(touched[i].line, touched[i].sectors);
        traffic.l1_miss_sectors[c] += std::popcount(missing);
        beyond |= c == 1 && missing != 0;
        if (c != 1) continue;
        own.l2_sectors += std::popcount(missing);
        CountReuse(array, start, touched[i].line, missing, true);
      }
    } else {
      // The L1 makes room for what is stored (Khairy et al., Accel-Sim, ISCA 2020), and keeps none of it for reads.
      for (SectorCache& cache : trace.caches) cache.Read(touched[i].line, 0);
      CountReuse(array, start, touched[i].line, touched[i].sectors, false);
    }
    first |= TouchSectors(array, start, touched[i].line, touched[i].sectors, load);
  }
  if (!load) {
    // The warp has waited for what it stores, and what it loads next cannot pass the store.
    if (!trace.unordered) ChangeWarps(warp);
    return;
  }
  if (beyond) MarkBeyondL1(warp, in, first);
  // Warps take turns as on a GPU, or the cache would see one warp's whole loop at a time.
  trace.unordered &= (in.flags & kFlagReadOnly) != 0;
  trace.loads += std::max<uint32_t>(1, in.count * std::max<uint32_t>(4, in.size) / 4);
  if (trace.loads >= kRegistersToYield) ChangeWarps(warp);
}

}  // namespace kgrpo::simt
