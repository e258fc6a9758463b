// Who last touched each byte of a memory, for finding unordered accesses. Used by the loads, stores and atomics of
// checked launches.
//
// Order is kept in vector clocks. Each warp has a clock that ticks when it synchronises; `known[w]` of a warp says
// which of warp w's accesses happened before its own next one: those with a lower clock. Within a warp the lanes are
// ordered by warp-level synchronisation only (`lane_known`), as since Volta they may not run in step. Between blocks
// there is order only through a release (a fence, then an atomic or volatile store) and a later acquire (an atomic or
// volatile load).
#ifndef KGRPO_EVALUATOR_SIM_SIMT_RACE_SHADOW_H_
#define KGRPO_EVALUATOR_SIM_SIMT_RACE_SHADOW_H_

#include <cstdint>
#include <memory>
#include <vector>

namespace kgrpo::simt {

// One access. block == 0: none.
struct AccessCell {
  uint32_t block = 0;  // index + 1
  uint32_t clock = 0;  // of the warp
  uint32_t pc = 0;
  uint16_t thread = 0;  // within the block
  uint8_t atomic = 0;
  uint8_t release = 0;    // unused bits
  uint32_t releases = 0;  // how many releases the block had done
};

// The accesses to one granule: the last write, and two readers since (of different warps or lanes where there were).
struct Granule {
  AccessCell write;
  AccessCell read[2];
};

// Granules of 4 bytes; a page whose bytes are accessed one or two at a time is refined to granules of 1.
class RaceShadow {
 public:
  static constexpr uint32_t kPageBytes = 1024;

  void Reset(uint64_t bytes) {
    pages_.clear();
    pages_.resize((bytes + kPageBytes - 1) / kPageBytes);
  }
  bool empty() const { return pages_.empty(); }

  // The granules of [offset, offset + size): size is 1, 2 or a multiple of 4, offset a multiple of min(size, 4) or not.
  struct Span {
    Granule* first;
    uint32_t count;
    uint32_t granule_bytes;
  };
  // [offset, offset + size) must lie within one page (aligned accesses of up to 16 bytes do).
  Span At(uint64_t offset, uint32_t size) {
    Page& page = pages_[offset / kPageBytes];
    const uint32_t within = static_cast<uint32_t>(offset % kPageBytes);
    if (page.granules == nullptr) {
      page.fine = size < 4;
      page.granules = std::make_unique<Granule[]>(page.fine ? kPageBytes : kPageBytes / 4);
    }
    if (size < 4 && !page.fine) Refine(page);
    if (page.fine) return {&page.granules[within], size, 1};
    return {&page.granules[within / 4], size / 4, 4};
  }

 private:
  struct Page {
    std::unique_ptr<Granule[]> granules;
    bool fine = false;
  };
  static void Refine(Page& page) {
    auto fine = std::make_unique<Granule[]>(kPageBytes);
    for (uint32_t i = 0; i < kPageBytes; ++i) fine[i] = page.granules[i / 4];
    page.granules = std::move(fine);
    page.fine = true;
  }
  std::vector<Page> pages_;
};

}  // namespace kgrpo::simt
#endif  // KGRPO_EVALUATOR_SIM_SIMT_RACE_SHADOW_H_
