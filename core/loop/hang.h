// Finds a rank that is stuck while the others wait for it. Each rank reports with its sign of life which plugin
// function its loop is in; rank 0 records here since when. Used by loop/ranks.h.
#ifndef KGRPO_LOOP_HANG_H
#define KGRPO_LOOP_HANG_H

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kgrpo {

// The current activity of a rank's loop thread.
struct RankState {
  uint64_t order = 0;     // number of the last order that it has begun
  bool in_order = false;  // it is still working on that order
  bool waits = false;     // for the other ranks, in `call`
  std::string call;       // "my_trainer's update"; empty: in no plugin call
  uint64_t calls = 0;     // begun so far; distinguishes two calls of one function
  bool operator==(const RankState&) const = default;
};

std::string ToText(const RankState& state);
// Parses ToText's form. Returns nothing where `text` is anything else: a rank of another version may have written it.
std::optional<RankState> RankStateOf(const std::string& text);

// A rank is stuck when it has been in one plugin call of an order for the whole limit, no other rank's state has
// changed for as long, and at least one waits. A rank outside plugin calls, for example while it awaits a coder, is
// never stuck. If all ranks wait for each other for the limit, they are all stuck.
class HangWatch {
 public:
  using Clock = std::chrono::steady_clock;

  explicit HangWatch(uint32_t ranks) : seen_(ranks) {}
  void Saw(uint32_t rank, const RankState& state, Clock::time_point now);
  // Returns the stuck rank and its call as the beginning of a sentence; nothing where no rank is stuck.
  std::optional<std::string> Stuck(std::chrono::seconds limit, Clock::time_point now) const;

 private:
  struct Seen {
    RankState state;
    std::optional<Clock::time_point> since;
  };
  std::vector<Seen> seen_;  // by rank
};

}  // namespace kgrpo
#endif
