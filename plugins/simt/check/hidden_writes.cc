#include "simt/check/hidden_writes.h"

#include <cstring>

#include "simt/check/race_order.h"

namespace kgrpo::simt {
namespace {

uint64_t OffsetOf(const Access& access, int lane, uint64_t base) {
  return access.address[lane] - base;
}

}  // namespace

HiddenWrites::HiddenWrites(Warp& warp, const Instruction& in, uint32_t mask, const Access& access) {
  if (!warp.grid->hides_writes) return;
  Memory writes, atomics;
  for (const int lane : EachBit(access.distinct & mask)) {
    uint64_t base = 0;
    RaceShadow* shadow = ShadowOf(warp, access, lane, base);
    if (shadow == nullptr) continue;
    const uint64_t offset = OffsetOf(access, lane, base);
    const RaceShadow::Span span = shadow->At(offset, access.bytes);
    const uint32_t each = access.bytes / span.count;
    for (uint32_t g = 0; g < span.count; ++g) {
      const bool by_atomic = !HappenedBefore(span.atomic[g], warp, lane, atomics);
      if (!by_atomic && HappenedBefore(span.write[g], warp, lane, writes)) continue;
      Granule granule{access.At(lane) + g * each, shadow->Before(offset + uint64_t{g} * each), each, {}};
      if (std::memcmp(granule.memory, granule.before, each) == 0) continue;
      if (std::optional<Finding>& choice = warp.grid->result->choice; !choice) {
        choice =
            RaceOf(warp, in.index, static_cast<uint32_t>(warp.id * kLanes + lane), access.space, access.address[lane],
                   access.bytes, "reads", by_atomic ? span.atomic[g] : span.write[g], by_atomic ? "updates" : "writes");
      }
      std::memcpy(granule.newest.data(), granule.memory, each);
      std::memcpy(granule.memory, granule.before, each);
      hidden_.push_back(granule);
    }
  }
}

HiddenWrites::~HiddenWrites() {
  for (const Granule& granule : hidden_) {
    std::memcpy(granule.memory, granule.newest.data(), granule.bytes);
    std::memcpy(granule.before, granule.newest.data(), granule.bytes);
  }
}

void KeepBytesBefore(Warp& warp, uint32_t mask, const Access& access) {
  for (const int lane : EachBit(mask)) {
    uint64_t base = 0;
    RaceShadow* shadow = ShadowOf(warp, access, lane, base);
    if (shadow != nullptr) std::memcpy(shadow->Before(OffsetOf(access, lane, base)), access.At(lane), access.bytes);
  }
}

}  // namespace kgrpo::simt
