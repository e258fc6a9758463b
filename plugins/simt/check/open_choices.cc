#include "simt/check/open_choices.h"

#include <bit>
#include <cstring>

#include "simt/check/race_order.h"

namespace kgrpo::simt {
namespace {

uint64_t OffsetOf(const Access& access, int lane, uint64_t base) { return access.address[lane] - base; }

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

uint32_t ChooseStores(Warp& warp, const Instruction& in, uint32_t mask, const Access& access,
                      const std::function<bool(int, int)>& differ) {
  const bool first_stays = warp.grid->config->other_choices;
  uint32_t storing = 0;
  for (uint32_t left = mask; left != 0;) {
    uint32_t together = 0;
    for (const int l : EachBit(left)) {
      if (access.address[l] == access.address[std::countr_zero(left)]) together |= 1u << l;
    }
    left &= ~together;
    const int first = std::countr_zero(together), last = kLanes - 1 - std::countl_zero(together);
    storing |= 1u << (first_stays ? first : last);
    std::optional<Finding>& choice = warp.grid->result->choice;
    for (uint32_t m = together; !choice && m != 0; m &= m - 1) {
      const int l = std::countr_zero(m);
      if (!differ(l, last)) continue;
      choice =
          RaceOf(warp, in.index, static_cast<uint32_t>(warp.id * kLanes + last), access.space, access.address[last],
                 access.bytes, "writes", NoteEvent(warp, in, AccessKind::kStore) * kLanes + static_cast<uint32_t>(l),
                 "writes", "by the same instruction, which leaves open whose value stays");
    }
  }
  return storing;
}

}  // namespace kgrpo::simt
