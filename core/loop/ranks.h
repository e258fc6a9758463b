// The ranks of a run, as the loop sees them: rank 0 leads, the others follow (loop/follower.h). The leader runs the
// loop of loop/run.h as if it were alone, and gives an order wherever others can help or must keep up: a share of a
// rollout, an update, a checkpoint to load. So every decision, and everything on disk, is the leader's.
//
// A watch of its own thread tells a rank that died or stopped answering from one that is busy: each rank says every
// second that it lives. Where one doesn't, the leader says which, and all ranks end at once; the run goes on from its
// last checkpoint with `resume`. A leader that is lost is missed by all. A rank that lives and is stuck in a plugin's
// function is found by loop/hang.h.
#ifndef KGRPO_LOOP_RANKS_H
#define KGRPO_LOOP_RANKS_H

#include "base/plugin_calls.h"
#include "loop/hang.h"
#include "plugin/transport.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

namespace kgrpo {

class Ranks {
 public:
  // Every rank makes one, on the thread that will run its loop. `transport` outlives it.
  explicit Ranks(Transport& transport);
  // A leader that ends without End ends the others as failed.
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  uint32_t rank() const { return rank_; }
  uint32_t size() const { return size_; }
  bool leads() const { return rank_ == 0; }

  // The first that the ranks do together: makes sure that they are about to do the same run, then has each `prepare`
  // for it. `versions` and `pipeline` are equal on all ranks of a run, and so is what `prepare` returns, the names of
  // the problems a line each; lines that differ are quoted. What is wrong on any rank is thrown on the leader; a
  // follower then does not return, and ends with the leader.
  void Agree(const std::string& versions, const std::string& pipeline, const std::function<std::string()>& prepare);

  // How to go on after a rank was lost, for the leader's last words: "kgrpo-host resume RUN goes on". [any thread]
  void SetWayOn(const std::string& way_on);

  // How long a rank may be in one call of a plugin while others wait for it; 0: for ever. [any thread]
  void SetHangLimit(std::chrono::seconds limit) { hang_limit_ = limit.count(); }

  // The leader's; the others wait for it. Every order is followed by one of the two functions below on every rank.
  void Order(const nlohmann::ordered_json& order);
  nlohmann::ordered_json NextOrder();

  // Runs this rank's work for the order, and returns what the works of all ranks returned, by rank. Where any failed,
  // throws on every rank what the first of them failed with, under its name unless it is the leader's.
  std::vector<std::string> Together(const std::function<std::string()>& work);
  // Called within that work where it fails: the others see AnotherFailed soon, and may give theirs up.
  void TellFailing();
  // [any thread]
  bool AnotherFailed() const { return failing_order_ == orders_; }
  // The same for work within which the ranks wait for each other. What all of them fail with alike is thrown; a failure
  // of some leaves the rest waiting, and ends the run.
  void InStep(const std::function<void()>& work);

  // The leader's last order: the others end with that exit code.
  void End(int exit_code);
  // A follower's answer to it: from here on nobody misses the others.
  void Part();
  // Of a follower whose work failed outside of an order: tells the leader, who ends the run.
  [[noreturn]] void Fail(const std::string& message);

 private:
  void RequireConnected() const;
  template <typename Call>
  auto Connected(Call&& call);
  static void Compare(const std::vector<std::string>& all);
  void Watch();
  void LookAround();
  const char* PlaceOwner() const;
  void StopWatching();
  RankState OwnState() const;
  void WatchFollowers();
  void WatchForHang();
  void WatchLeader();
  [[noreturn]] void Lose(const std::string& who);
  [[noreturn]] void LeaveWith(std::string message, bool tell);
  bool AllFailedToo();

  Transport& transport_;
  const uint32_t rank_, size_;
  std::atomic<uint64_t> orders_{0};
  std::atomic<uint64_t> failing_order_{0};  // the last in which a rank's work failed
  const ThreadCalls calls_;                 // the loop's thread's
  std::atomic<bool> in_order_{false};       // this rank's work for the last order is under way
  std::atomic<int64_t> hang_limit_{0};      // seconds; 0: none
  bool agreed_ = false;
  bool over_ = false;    // the ranks have parted
  bool broken_ = false;  // some of them may wait for what will not come

  struct Sign {
    std::string last;
    std::chrono::steady_clock::time_point since;
  };
  std::vector<Sign> signs_;                                            // of life, by rank; the watch's
  HangWatch hang_;                                                     // the watch's
  uint64_t beat_ = 0;                                                  // the watch's
  bool stop_told_ = false;                                             // the watch's
  std::optional<std::chrono::steady_clock::time_point> failure_seen_;  // the watch's

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool watching_ = true;
  std::string way_on_;
  std::thread watch_;
};

// Does `work` here; where there are other ranks, tells them what `order` makes, and waits until they have done theirs.
void OnAllRanks(Ranks* ranks, const std::function<nlohmann::ordered_json()>& order, const std::function<void()>& work);
// The same for work within which the ranks wait for each other.
void InStepOnAllRanks(Ranks* ranks, const std::function<nlohmann::ordered_json()>& order,
                      const std::function<void()>& work);

}  // namespace kgrpo
#endif
