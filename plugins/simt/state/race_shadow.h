// Records the last accesses to each byte of a memory, to find unordered ones. Used by the loads, stores and atomics of
// checked launches.
//
// Order is kept in vector clocks. Each warp has a clock that ticks when it synchronises; `known[w]` of a warp says
// which of warp w's accesses happened before its own next one: those with a lower clock. Within a warp the lanes are
// ordered by warp-level synchronisation only (`lane_known`), as since Volta they may not run in step.
//
// Between blocks there is order only through memory. A fence covers the warp's accesses and those that it knows of. An
// atomic or volatile store after it (by that warp, or by one that met it at a barrier) releases the covered accesses.
// An atomic or volatile load of that address acquires them, and all that was released before.
//
// An access's warp, clock and place are the same for all lanes of an instruction. They are stored once, in an event; a
// memory cell keeps the event's number and the lane.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

namespace kgrpo::simt {

// One instruction's access.
struct AccessEvent {
  uint32_t block = 0;
  uint32_t clock = 0;  // of the warp, or of the copy engine
  uint32_t pc = 0;
  uint16_t warp = 0;
  bool atomic = false;  // or volatile: meant to be concurrent
  uint8_t issuer = 0;   // for a bulk copy, whose `warp` is the engine's: the warp that issued it
  bool operator==(const AccessEvent&) const = default;
};

// An event's number * 32 + lane; 0: none (event 0 is never used).
using AccessCell = uint32_t;
// When there are more, everything is forgotten and noted anew.
inline constexpr size_t kMostEvents = size_t{1} << 22;

// A warp's accesses with a clock below `clock` were released at `time`.
struct Released {
  uint32_t clock = 0;
  uint64_t time = 0;
};

// The accesses to the granules of a memory. Each granule keeps the last plain write, two readers since (of different
// warps if there were), and the last atomic or volatile write since. Granules have 4 bytes, or 1 after any access of
// one or two bytes.
class RaceShadow {
 public:
  // Forgets all accesses; the memory has `bytes` bytes.
  void Reset(uint64_t bytes) {
    const uint64_t granules = bytes / 4 + 1;
    if (cells_ != nullptr && shift_ == 2 && bytes == bytes_ && granules <= kCheapToClear) {
      std::memset(cells_.get(), 0, granules * (atomics_ ? kCellsOfGranule : kPlainCells) * sizeof(AccessCell));
      atomics_ = false;
      return;
    }
    atomics_ = false;
    bytes_ = bytes;
    shift_ = 2;
    granules_ = granules;
    cells_ = Make(granules);
  }
  bool empty() const { return cells_ == nullptr; }

  // True if any atomic or volatile write was noted: all cells of those are 0 otherwise.
  bool atomics() const { return atomics_; }
  // To be called before one is noted.
  void ExpectAtomics() { atomics_ = true; }

  // Granules that follow each other, each access write[i], read[0][i], read[1][i], atomic[i].
  struct Span {
    AccessCell* write;
    AccessCell* read[2];
    AccessCell* atomic;
    uint32_t count;
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
    return {first, {first + granules_, first + 2 * granules_}, first + kPlainCells * granules_, size >> shift};
  }

 private:
  static constexpr uint64_t kPlainCells = 3, kCellsOfGranule = 4;
  static constexpr uint64_t kCheapToClear = uint64_t{1} << 16;
  struct Release {
    void operator()(AccessCell* cells) const { std::free(cells); }
  };
  using Cells = std::unique_ptr<AccessCell[], Release>;
  // Zeroed memory that costs nothing until touched.
  static Cells Make(uint64_t granules) {
    auto* cells = static_cast<AccessCell*>(std::calloc(granules * kCellsOfGranule, sizeof(AccessCell)));
    if (cells == nullptr) throw std::bad_alloc();
    return Cells(cells);
  }
  void Refine() {
    const uint64_t fine_granules = bytes_ + 1;
    Cells fine = Make(fine_granules);
    for (uint64_t kind = 0; kind < kCellsOfGranule; ++kind) {
      for (uint64_t i = 0; i < bytes_; ++i) {
        const AccessCell coarse = cells_[kind * granules_ + i / 4];
        if (coarse != 0) fine[kind * fine_granules + i] = coarse;
      }
    }
    cells_ = std::move(fine);
    granules_ = fine_granules;
    shift_ = 0;
  }
  uint64_t bytes_ = 0;
  bool atomics_ = false;
  uint32_t shift_ = 2;
  uint64_t granules_ = 0;
  Cells cells_;
};

}  // namespace kgrpo::simt
