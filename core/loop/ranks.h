// The ranks of a run, as the loop sees them: rank 0 leads, the others follow (cli/open_run.cc). The leader runs the
// loop of loop/run.h as if it were alone. It gives orders for shared work: a share of a rollout, an update, a
// checkpoint to load. The leader alone makes decisions and writes to disk.
//
// Each rank sends a sign of life every second from a watch thread, so that a busy rank differs from one that died or
// stopped answering. If a rank is silent, the leader names it, and all ranks end at once; `resume` continues from the
// last checkpoint. Every follower watches the leader. loop/hang.h finds a rank that is alive but stuck in a plugin's
// function.
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

inline constexpr std::chrono::seconds kSilence{7};  // a rank without a sign of life for so long counts as lost

class Ranks {
 public:
  // Every rank makes one, on the thread that will run its loop. `transport` outlives it.
  explicit Ranks(Transport& transport);
  // If the leader did not call End, ends the others as failed.
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  uint32_t rank() const { return rank_; }
  uint32_t size() const { return size_; }
  bool leads() const { return rank_ == 0; }

  // The first call on every rank: checks that all ranks are about to do the same run, then calls `prepare` on each.
  // `versions` and `pipeline` must be equal on all ranks, and so must the result of `prepare` (the names of the
  // problems, one a line). The error quotes lines that differ. The leader throws the error of any rank; a follower then
  // does not return, and ends with the leader.
  void Agree(const std::string& versions, const std::string& pipeline, const std::function<std::string()>& prepare);

  // Sets the advice that ends the leader's message about a lost rank: "to continue it: kgrpo-host resume RUN". [any
  // thread]
  void SetResumeAdvice(const std::string& way_on);

  // Sets how long a rank may be in one plugin call while others wait for it; 0: without limit. [any thread]
  void SetHangLimit(std::chrono::seconds limit) { hang_limit_ = limit.count(); }

  // The leader calls Order; followers call NextOrder, which waits for it. After each order, every rank calls Together
  // or InStep.
  void Order(const nlohmann::ordered_json& order);
  nlohmann::ordered_json NextOrder();

  // Runs this rank's work for the order, and returns the results of all ranks, by rank. If any failed, throws on every
  // rank the error of the first one, with its rank unless it is the leader. Cancellations count only if all failures
  // are cancellations.
  std::vector<std::string> Together(const std::function<std::string()>& work);
  // Call within that work where it fails: AnotherFailed soon becomes true on the others, which may then stop theirs.
  void TellFailing();
  // [any thread]
  bool AnotherFailed() const { return failing_order_ == orders_; }
  // The same for work within which the ranks wait for each other. If all ranks fail, each throws its error. If only
  // some fail, the rest keep waiting, and the run ends.
  void InStep(const std::function<void()>& work);

  // The leader's last order: followers end with that exit code.
  void End(int exit_code);
  // A follower's answer to End: from here on no rank watches the others.
  void Part();
  // For a follower that failed alone or outside of an order: tells the leader, which ends the run.
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
  std::atomic<uint64_t> failing_order_{0};  // number of the last order in which a rank called TellFailing
  const ThreadCalls calls_;                 // the loop's thread's
  std::atomic<bool> in_order_{false};       // this rank's work for the last order is under way
  std::atomic<int64_t> hang_limit_{0};      // seconds; 0: none
  bool agreed_ = false;
  bool over_ = false;    // the ranks have parted
  bool broken_ = false;  // some ranks may wait for messages that will not come

  struct Sign {
    std::string last;
    std::chrono::steady_clock::time_point since;
  };
  std::vector<Sign> signs_;  // times of the last sign of life, by rank; the watch's
  HangWatch hang_;           // the watch's
  uint64_t beat_ = 0;        // the watch's
  bool stop_told_ = false;   // the watch's
  std::optional<std::chrono::steady_clock::time_point> failure_seen_;  // the watch's

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool watching_ = true;
  std::string way_on_;
  std::thread watch_;
};

// Does `work` here. With other ranks, sends them the order that `order` returns, and waits until they have done theirs.
void OnAllRanks(Ranks* ranks, const std::function<nlohmann::ordered_json()>& order, const std::function<void()>& work);
// The same for work within which the ranks wait for each other.
void InStepOnAllRanks(Ranks* ranks, const std::function<nlohmann::ordered_json()>& order,
                      const std::function<void()>& work);

}  // namespace kgrpo
#endif
