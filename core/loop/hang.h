// Finds the rank that a run waits for in vain. Each rank says with its sign of life which plugin function its loop is
// in; rank 0 keeps here since when. Used by loop/ranks.h.
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
  uint64_t order = 0;     // the last that it has begun
  bool in_order = false;  // not yet done with it
  bool waits = false;     // for the other ranks, in `call`
  std::string call;       // "my_trainer's update"; empty: in no plugin
  uint64_t calls = 0;     // begun so far: one of two calls of a function differs from the other
  bool operator==(const RankState&) const = default;
};

std::string ToText(const RankState& state);
// Throws nlohmann::json::exception where `text` is no such.
RankState RankStateOf(const std::string& text);

// A rank is stuck when it has been in one plugin call of an order for the limit, and nothing has changed for as long on
// any other while at least one waits. A rank that is in no plugin, as where it awaits a coder, is never stuck.
class HangWatch {
 public:
  using Clock = std::chrono::steady_clock;

  explicit HangWatch(uint32_t ranks) : seen_(ranks) {}
  void Saw(uint32_t rank, const RankState& state, Clock::time_point now);
  // Which rank is stuck in what, as a sentence's beginning; nothing where none is.
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
