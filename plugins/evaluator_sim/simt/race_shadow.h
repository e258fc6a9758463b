// Who last touched each byte of a memory, for finding unordered accesses. Used by the loads, stores and atomics of
// checked launches.
//
// Order is kept in vector clocks. Each warp has a clock that ticks when it synchronises; `known[w]` of a warp says
// which of warp w's accesses happened before its own next one: those with a lower clock. Within a warp the lanes are
// ordered by warp-level synchronisation only (`lane_known`), as since Volta they may not run in step. Between blocks
// there is order only through a release (a fence, then an atomic or volatile store) and a later acquire (an atomic or
// volatile load).
//
// What is known of an access (its warp, clock, place) is the same for all lanes of an instruction. It is noted once, in
// an event; a memory cell keeps the event's number and the lane.
#ifndef KGRPO_EVALUATOR_SIM_SIMT_RACE_SHADOW_H_
#define KGRPO_EVALUATOR_SIM_SIMT_RACE_SHADOW_H_

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace kgrpo::simt {

// One instruction's access.
struct AccessEvent {
  uint32_t block = 0;
  uint32_t clock = 0;     // of the warp
  uint32_t releases = 0;  // how many releases the block had done
  uint32_t pc = 0;
  uint16_t warp = 0;
  bool atomic = false;  // or volatile: meant to be concurrent
  bool operator==(const AccessEvent&) const = default;
};

// An event's number * 32 + lane; 0: none (event 0 is never used).
using AccessCell = uint32_t;
// When there are more, everything is forgotten and noted anew.
inline constexpr size_t kMostEvents = size_t{1} << 22;

// The accesses to one granule: the last write, and two readers since (of different warps where there were).
struct Granule {
  AccessCell write = 0;
  AccessCell read[2] = {0, 0};
};

// Granules of 4 bytes; of 1 once anything was accessed one or two bytes at a time.
class RaceShadow {
 public:
  // Forgets all accesses; the memory has `bytes` bytes.
  void Reset(uint64_t bytes) {
    bytes_ = bytes;
    shift_ = 2;
    granules_ = Make(bytes / 4 + 1);
  }
  bool empty() const { return granules_ == nullptr; }

  struct Span {
    Granule* first;
    uint32_t count;
  };
  // The granules of [offset, offset + size): an aligned access.
  Span At(uint64_t offset, uint32_t size) {
    if (size < 4 && shift_ != 0) [[unlikely]]
      Refine();
    return {&granules_[offset >> shift_], size >> shift_};
  }

 private:
  struct Release {
    void operator()(Granule* granules) const { std::free(granules); }
  };
  using Granules = std::unique_ptr<Granule[], Release>;
  // Zeroed memory that costs nothing until touched.
  static Granules Make(uint64_t count) {
    auto* granules = static_cast<Granule*>(std::calloc(count, sizeof(Granule)));
    if (granules == nullptr) throw std::bad_alloc();
    return Granules(granules);
  }
  void Refine() {
    Granules fine = Make(bytes_ + 1);
    for (uint64_t i = 0; i < bytes_; ++i) {
      const Granule& coarse = granules_[i / 4];
      if (coarse.write != 0 || coarse.read[0] != 0) fine[i] = coarse;
    }
    granules_ = std::move(fine);
    shift_ = 0;
  }
  uint64_t bytes_ = 0;
  uint32_t shift_ = 2;
  Granules granules_;
};

}  // namespace kgrpo::simt
#endif  // KGRPO_EVALUATOR_SIM_SIMT_RACE_SHADOW_H_
