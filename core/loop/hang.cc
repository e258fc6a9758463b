#include "loop/hang.h"

#include <kgrpo/support/dump_json.h>

#include <algorithm>

#include <nlohmann/json.hpp>

namespace kgrpo {

std::string ToText(const RankState& state) {
  return DumpJson(nlohmann::json{state.order, state.in_order, state.waits, state.call, state.calls});
}

std::optional<RankState> RankStateOf(const std::string& text) {
  try {
    const auto json = nlohmann::json::parse(text);
    return RankState{json.at(0), json.at(1), json.at(2), json.at(3), json.at(4)};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

void HangWatch::Saw(uint32_t rank, const RankState& state, Clock::time_point now) {
  Seen& seen = seen_.at(rank);
  if (seen.since && seen.state == state) return;
  seen = {state, now};
}

std::optional<std::string> HangWatch::Stuck(std::chrono::seconds limit, Clock::time_point now) const {
  const auto still = [&](const Seen& seen) { return seen.since && now - *seen.since >= limit; };
  const auto waits = [](const Seen& seen) { return seen.state.waits; };
  if (!std::all_of(seen_.begin(), seen_.end(), still) || std::none_of(seen_.begin(), seen_.end(), waits)) return {};
  const std::string seconds = std::to_string(limit.count()) + " s";
  for (size_t rank = 0; rank < seen_.size(); ++rank) {
    const RankState& state = seen_[rank].state;
    if (!state.waits && state.in_order && !state.call.empty())
      return "rank " + std::to_string(rank) + " has been in " + state.call + " for " + seconds +
             " while others wait for it";
  }
  if (std::all_of(seen_.begin(), seen_.end(), waits))
    return "all ranks have waited for each other for " + seconds + ", rank 0 in " + seen_[0].state.call;
  return {};
}

}  // namespace kgrpo
