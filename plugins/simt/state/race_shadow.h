// Records the last accesses to each byte of a memory, to find unordered ones. Used by the loads, stores and atomics of
// checked launches.
//
// Order is kept in vector clocks. Each warp has a clock that ticks when it synchronises; `known[w]` of a warp says
// which of warp w's accesses happened before its own next one: those with a lower clock. Within a warp the lanes are
// ordered by warp-level synchronisation only (`lane_known`), as since Volta they may not run in step.
//
// Between blocks there is order only through memory. A fence covers the warp's accesses and those that it knows of. An
// atomic or volatile store after it (by that warp, or by one that met it at a barrier) releases the covered accesses,
// and itself. An atomic or volatile load of that address acquires them, and all that was released before. Within a
// block the same works through shared memory and at the block's scope, by exact clocks (block_order.cc).
//
// An access's warp, clock and place are the same for all lanes of an instruction. They are stored once, in an event; a
// memory cell keeps the event's number and the lane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kgrpo::simt {

// One instruction's access.
struct AccessEvent {
  uint32_t block = 0;
  uint32_t clock = 0;  // of the warp, or of the copy engine
  uint32_t pc = 0;
  uint16_t warp = 0;
  bool atomic = false;    // or volatile: meant to be concurrent
  bool updates = false;   // an atomic operation, which other ones may come before or after
  bool in_block = false;  // meant so for threads of the block only
  uint8_t issuer = 0;     // for a bulk copy, whose `warp` is the engine's: the warp that issued it
  uint32_t released = 0;  // of a release: its time, for acquires that observe it
  bool operator==(const AccessEvent&) const = default;
};

// An event's number * 32 + lane; 0: none (event 0 is never used). Of a read also kSeveralLanes.
using AccessCell = uint32_t;
inline constexpr AccessCell kSeveralLanes = 1u << 31;  // other lanes of the warp read it too, unordered with that one
inline constexpr uint32_t EventNumber(AccessCell cell) { return (cell & ~kSeveralLanes) / 32; }
inline constexpr uint32_t LaneOf(AccessCell cell) { return cell % 32; }
// When there are more, everything is forgotten and noted anew.
inline constexpr size_t kMostEvents = size_t{1} << 22;

// A warp's accesses with a clock below `clock` were released at `time`.
struct Released {
  uint32_t clock = 0;
  uint64_t time = 0;
};

// The accesses to the granules of a memory. Each granule keeps the last plain write, the last atomic or volatile write
// since, and readers since. Granules have 4 bytes, or 1 after any access of one or two bytes.
//
// In shared memory each warp has a reader's cell. In global memory there are two, for readers of different warps if
// there were; a further one is dropped, which its granule remembers. If such a granule is written, the launch is made
// again (RacingReads::crowded) and keeps all readers of that allocation.
class RaceShadow {
 public:
  static constexpr uint32_t kGlobalReaders = 2;
  static constexpr size_t kMostFurther = size_t{1} << 20;  // further readers kept; later ones are forgotten

  // Forgets all accesses. The memory has `bytes` bytes, a granule `readers` cells: one a warp, or kGlobalReaders.
  void Reset(uint64_t bytes, uint32_t readers) {
    const uint64_t granules = bytes / 4 + 1;
    if (cells_ != nullptr && shift_ == 2 && bytes == bytes_ && readers == readers_ && granules <= kCheapToClear) {
      for (uint32_t kind = 0; kind < kOthers + readers; ++kind) {
        if ((used_ >> kind & 1u) != 0) std::memset(cells_.get() + kind * granules, 0, granules * sizeof(AccessCell));
      }
    } else {
      bytes_ = bytes;
      shift_ = 2;
      granules_ = granules;
      readers_ = readers;
      cells_ = Make(granules);
      before_ = nullptr;
    }
    used_ = uint64_t{1} << kWrite;
    last_read_.assign(readers, 0);
    further_.clear();
    further_count_ = 0;
  }
  bool empty() const { return cells_ == nullptr; }

  // True if any atomic or volatile write was noted: all cells of those are 0 otherwise.
  bool atomics() const { return (used_ >> kAtomic & 1u) != 0; }
  // To be called before one is noted.
  void ExpectAtomics() { used_ |= uint64_t{1} << kAtomic; }
  // True if a reader was dropped, and not yet overwritten.
  bool drops() const { return (used_ >> kDropped & 1u) != 0; }

  // Granules that follow each other, each access write[i], atomic[i], dropped[i] (the last one) and Reader(r)[i].
  struct Span {
    AccessCell* write;
    AccessCell* atomic;
    AccessCell* dropped;
    AccessCell* reader;
    uint64_t granules;
    uint32_t count;
    AccessCell* Reader(uint32_t r) const { return reader + r * granules; }
  };
  // The logarithm of a granule's bytes, once accesses of `size` bytes have been noted.
  uint32_t ShiftFor(uint32_t size) {
    if (size < 4 && shift_ != 0) [[unlikely]]
      Refine();
    return shift_;
  }
  // The granules of [offset, offset + size): an aligned access.
  Span At(uint64_t offset, uint32_t size) { return AtRow(offset, size, size); }
  // The granules of [offset, offset + size): accesses of `each` bytes side by side.
  Span AtRow(uint64_t offset, uint32_t size, uint32_t each) {
    const uint32_t shift = ShiftFor(each);  // may make other cells
    AccessCell* first = cells_.get() + (offset >> shift);
    return {first + kWrite * granules_,
            first + kAtomic * granules_,
            first + kDropped * granules_,
            first + kOthers * granules_,
            granules_,
            size >> shift};
  }

  uint32_t readers() const { return readers_; }
  // The number of the latest event noted in a reader's cells; 0: none, and those cells are 0.
  uint32_t last_read(uint32_t reader) const { return last_read_[reader]; }
  void ExpectReads(uint32_t reader, uint32_t event) {
    last_read_[reader] = event;
    used_ |= uint64_t{1} << (kOthers + reader);
  }

  // Drops the reader `cell` of a granule: keeps it among the further ones, if they are kept.
  void Drop(AccessCell* dropped, AccessCell cell) {
    *dropped = cell;
    used_ |= uint64_t{1} << kDropped;
    if (!keeps_further_ || further_count_ == kMostFurther) return;
    further_[GranuleOf(dropped)].push_back(cell);
    ++further_count_;
  }
  // From now on all readers are kept.
  void KeepFurther() { keeps_further_ = true; }
  bool keeps_further() const { return keeps_further_; }
  // The further readers of a granule; none if they are not kept.
  const std::vector<AccessCell>& FurtherOf(const AccessCell* dropped) const {
    static const std::vector<AccessCell> kNone;
    const auto found = further_.find(GranuleOf(dropped));
    return found == further_.end() ? kNone : found->second;
  }
  void ForgetDropped(AccessCell* dropped) {
    *dropped = 0;
    if (keeps_further_) further_.erase(GranuleOf(dropped));
  }

  // The byte that the latest write overwrote; see open_choices.h.
  std::byte* Before(uint64_t offset) {
    if (before_ == nullptr) before_.reset(static_cast<std::byte*>(std::calloc(bytes_ + 1, 1)));
    if (before_ == nullptr) throw std::bad_alloc();
    return before_.get() + offset;
  }

 private:
  static constexpr uint32_t kWrite = 0, kAtomic = 1, kDropped = 2, kOthers = 3;
  static constexpr uint64_t kCheapToClear = uint64_t{1} << 16;
  struct Release {
    void operator()(void* memory) const { std::free(memory); }
  };
  using Cells = std::unique_ptr<AccessCell[], Release>;
  // Zeroed memory that costs nothing until touched.
  Cells Make(uint64_t granules) const {
    auto* cells = static_cast<AccessCell*>(std::calloc(granules * (kOthers + readers_), sizeof(AccessCell)));
    if (cells == nullptr) throw std::bad_alloc();
    return Cells(cells);
  }
  uint64_t GranuleOf(const AccessCell* dropped) const {
    return static_cast<uint64_t>(dropped - cells_.get()) - kDropped * granules_;
  }
  void Refine() {
    const uint64_t fine_granules = bytes_ + 1;
    Cells fine = Make(fine_granules);
    for (uint64_t kind = 0; kind < kOthers + readers_; ++kind) {
      if ((used_ >> kind & 1u) == 0) continue;
      for (uint64_t i = 0; i < bytes_; ++i) {
        const AccessCell coarse = cells_[kind * granules_ + i / 4];
        if (coarse != 0) fine[kind * fine_granules + i] = coarse;
      }
    }
    std::unordered_map<uint64_t, std::vector<AccessCell>> further;
    for (const auto& [granule, cells] : further_)
      for (uint64_t i = 0; i < 4; ++i) further[4 * granule + i] = cells;
    further_ = std::move(further);
    cells_ = std::move(fine);
    granules_ = fine_granules;
    shift_ = 0;
  }
  uint64_t bytes_ = 0;
  uint64_t used_ = 0;  // a bit for each kind of cells: some may not be 0
  uint32_t shift_ = 2;
  uint32_t readers_ = 0;
  uint64_t granules_ = 0;
  Cells cells_;
  std::vector<uint32_t> last_read_;
  bool keeps_further_ = false;
  size_t further_count_ = 0;
  std::unordered_map<uint64_t, std::vector<AccessCell>> further_;  // by granule
  std::unique_ptr<std::byte[], Release> before_;
};

}  // namespace kgrpo::simt
