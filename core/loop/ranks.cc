#include "loop/ranks.h"

#include "base/cancel.h"
#include "config/hidden_keys.h"
#include "loop/wire.h"

#include <kgrpo/sdk/error.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <future>
#include <optional>
#include <sstream>
#include <utility>

namespace kgrpo {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr int kFailedCode = 1;
constexpr std::chrono::milliseconds kBeat{1000};  // between a rank's signs of life

std::string AliveKey(uint32_t rank) { return "alive/" + std::to_string(rank); }
std::string FailedKey(uint32_t rank) { return "failed/" + std::to_string(rank); }
std::string FailingKey(uint64_t order) { return "failing/" + std::to_string(order); }
std::string StateKey(uint32_t rank) { return "state/" + std::to_string(rank); }
const char* const kOverKey = "over";  // set once the leader has logged why the run ends: the exit code of the others
const char* const kStopKey = "stop";  // the leader's user asked to stop

// Marks this rank as working on an order while the object exists.
class InOrder {
 public:
  explicit InOrder(std::atomic<bool>& flag) : flag_(flag) { flag_ = true; }
  ~InOrder() { flag_ = false; }
  InOrder(const InOrder&) = delete;
  InOrder& operator=(const InOrder&) = delete;

 private:
  std::atomic<bool>& flag_;
};

// Throws where the `texts`, by rank, are not equal. `differs`: the message's words, "reads another pipeline".
void CompareLines(const std::vector<std::string>& texts, const std::string& differs) {
  for (size_t rank = 1; rank < texts.size(); ++rank) {
    std::istringstream of_leader(texts[0]), of_one(texts[rank]);
    for (std::string left, right; of_leader || of_one;) {
      left = right = "";
      std::getline(of_leader, left);
      std::getline(of_one, right);
      if (left == right) continue;
      throw Error(KGRPO_ERROR_INVALID, "rank " + std::to_string(rank) + " " + differs + " than rank 0: it has \"" +
                                           right + "\" where rank 0 has \"" + left + "\"");
    }
  }
}

}  // namespace

Ranks::Ranks(Transport& transport)
    : transport_(transport), rank_(transport.rank()), size_(transport.size()), hang_(size_) {
  signs_.assign(size_, {"", Clock::now()});
  watch_ = std::thread([this] { Watch(); });
}

Ranks::~Ranks() {
  if (leads() && !over_) {
    try {
      End(kFailedCode);
    } catch (const std::exception&) {
      // Nobody is left to be told.
    }
  }
  StopWatching();
}

void Ranks::StopWatching() {
  {
    const std::lock_guard lock(mutex_);
    watching_ = false;
  }
  changed_.notify_all();
  if (watch_.joinable()) watch_.join();
}

void Ranks::SetResumeAdvice(const std::string& way_on) {
  const std::lock_guard lock(mutex_);
  way_on_ = way_on;
}

void Ranks::RequireConnected() const {
  if (broken_) throw Error(KGRPO_ERROR_UNAVAILABLE, "the connection between the ranks is lost");
}

// Runs a call of the transport. If it fails because a rank was lost, sleeps until the watch reports that rank and ends
// this process.
template <typename Call>
auto Ranks::Connected(Call&& call) {
  RequireConnected();
  try {
    return std::forward<Call>(call)();
  } catch (const Error&) {
    broken_ = true;
    std::this_thread::sleep_for(kSilence + 4 * kBeat);
    throw;
  }
}

void Ranks::Agree(const std::string& versions, const std::string& pipeline,
                  const std::function<std::string()>& prepare) {
  try {
    Compare(Together([&] { return ToBytes(Json::array({versions, pipeline})); }));
    CompareLines(Together(prepare), "can use other problems");
  } catch (const Error&) {
    if (leads() || broken_) throw;
    for (;;) std::this_thread::sleep_for(kSilence);  // the leader reports the error; the watch then ends this process
  }
  agreed_ = true;
}

// Requires all ranks to run the same programs and pipeline. `all`: programs and pipeline of each, by rank.
void Ranks::Compare(const std::vector<std::string>& all) {
  const Json leader = FromBytes(all[0]);
  std::vector<std::string> pipelines;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const Json one = FromBytes(all[rank]);
    if (one[0] != leader[0]) {
      throw Error(KGRPO_ERROR_INVALID, "rank " + std::to_string(rank) + " runs other programs than rank 0 (" +
                                           one[0].get<std::string>() + ", not " + leader[0].get<std::string>() +
                                           "): start the same build on every machine");
    }
    pipelines.push_back(one[1]);
  }
  CompareLines(pipelines, "reads another pipeline");
}

void Ranks::Order(const Json& order) {
  ++orders_;
  Connected([&] { return transport_.Broadcast(ToBytes(order), 0); });
}

Json Ranks::NextOrder() {
  ++orders_;
  return FromBytes(Connected([&] { return transport_.Broadcast("", 0); }));
}

std::vector<std::string> Ranks::Together(const std::function<std::string()>& work) {
  const InOrder doing(in_order_);
  Json own;
  try {
    own = {{"result", work()}};
  } catch (const Error& error) {
    own = {{"code", static_cast<int>(error.code())}, {"error", error.what()}};
  } catch (const std::exception& error) {
    own = {{"code", static_cast<int>(KGRPO_ERROR_INTERNAL)}, {"error", error.what()}};
  }
  std::vector<std::string> results;
  std::optional<Error> failure;  // the first; a cancellation only where nothing else failed
  for (uint32_t rank = 0; rank < size_; ++rank) {
    const Json one =
        FromBytes(Connected([&] { return transport_.Broadcast(rank == rank_ ? ToBytes(own) : "", rank); }));
    if (one.contains("result")) {
      results.push_back(one.at("result"));
      continue;
    }
    const auto code = static_cast<kgrpo_error_code>(one.at("code").get<int>());
    if (failure && (failure->code() != KGRPO_ERROR_CANCELLED || code == KGRPO_ERROR_CANCELLED)) continue;
    failure.emplace(code,
                    (rank == 0 ? "" : "rank " + std::to_string(rank) + ": ") + one.at("error").get<std::string>());
  }
  if (failure) throw *failure;
  return results;
}

void Ranks::TellFailing() {
  try {
    transport_.Put(FailingKey(orders_), "1");
  } catch (const Error&) {
    // The watch reports the lost rank.
  }
}

// Returns true if every rank sets a "trouble" key in time. They use keys, since ranks that did not fail wait elsewhere.
bool Ranks::AllFailedToo() {
  const std::string prefix = "trouble/" + std::to_string(orders_.load()) + "/";
  try {
    transport_.Put(prefix + std::to_string(rank_), "1");
    const auto deadline = Clock::now() + kSilence;
    for (uint32_t rank = 0; rank < size_;) {
      if (transport_.Get(prefix + std::to_string(rank))) {
        ++rank;
        continue;
      }
      if (Clock::now() >= deadline) return false;
      std::this_thread::sleep_for(kBeat / 10);
    }
  } catch (const Error&) {
    return false;
  }
  return true;
}

void Ranks::InStep(const std::function<void()>& work) {
  RequireConnected();
  const InOrder doing(in_order_);
  try {
    work();
  } catch (const std::exception& error) {
    if (!broken_ && AllFailedToo()) throw;
    broken_ = true;
    if (!leads()) Fail(error.what());
    throw;
  }
}

void Ranks::End(int exit_code) {
  over_ = true;
  if (broken_ || !agreed_) {
    transport_.Put(kOverKey, std::to_string(exit_code));
    std::this_thread::sleep_for(kBeat + kBeat / 2);  // so that the others hear of it
    return;
  }
  Order(EndOrder(exit_code));
  Part();
}

void Ranks::Part() {
  Together([] { return std::string(); });
  StopWatching();
}

void Ranks::Fail(const std::string& message) {
  try {
    transport_.Put(FailedKey(rank_), message);
    std::this_thread::sleep_for(kSilence);  // the leader logs the message; then this rank's watch ends the process
  } catch (const Error&) {
    std::this_thread::sleep_for(3 * kBeat);  // the leader is gone: the watch reports it
  }
  _exit(kFailedCode);
}

void Ranks::Watch() {
  for (;;) {
    bool reached = true;
    try {
      // A machine without power closes no connection, so a message to it may block for ever.
      std::future<void> look = std::async(std::launch::async, [this] { LookAround(); });
      if (look.wait_for(kSilence) == std::future_status::timeout) Lose(PlaceOwner());
      look.get();
    } catch (const Error&) {
      reached = false;
    }
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, kBeat, [this] { return !watching_; })) return;
    lock.unlock();
    // Report only now: at a normal end the leader, which holds the key-value store, may exit before this thread is told
    // to stop.
    if (!reached) Lose(PlaceOwner());
  }
}

// The party to report as lost when messages can no longer be exchanged.
const char* Ranks::PlaceOwner() const { return leads() ? "the ranks' key-value store" : "rank 0"; }

void Ranks::LookAround() {
  if (!leads()) transport_.Put(StateKey(rank_), ToText(OwnState()));
  transport_.Put(AliveKey(rank_), std::to_string(++beat_));
  leads() ? WatchFollowers() : WatchLeader();
  const uint64_t order = orders_;
  if (transport_.Get(FailingKey(order))) failing_order_ = order;
}

RankState Ranks::OwnState() const {
  const CallUnderWay call = calls_.Current();
  RankState state = {orders_, in_order_, call.plugin == transport_.plugin(), "", calls_.begun()};
  if (call.plugin != nullptr && call.function != nullptr)
    state.call = std::string(call.plugin->name) + "'s " + call.function;
  return state;
}

void Ranks::WatchForHang() {
  const auto now = Clock::now();
  hang_.Saw(0, OwnState(), now);
  for (uint32_t rank = 1; rank < size_; ++rank) {
    const auto text = transport_.Get(StateKey(rank));
    if (const auto state = text ? RankStateOf(*text) : std::nullopt) hang_.Saw(rank, *state, now);
  }
  const std::chrono::seconds limit(hang_limit_);
  if (limit.count() == 0) return;
  if (const auto stuck = hang_.Stuck(limit, now))
    LeaveWith(*stuck + " (loop.hang_seconds is the limit)", /*tell=*/true);
}

void Ranks::WatchFollowers() {
  for (uint32_t rank = 1; rank < size_; ++rank) {
    if (const auto failure = transport_.Get(FailedKey(rank))) {
      // Wait: if the leader is about to report the same error, that rank is not the cause.
      if (!failure_seen_) failure_seen_ = Clock::now();
      if (Clock::now() - *failure_seen_ >= 2 * kBeat)
        LeaveWith("rank " + std::to_string(rank) + ": " + *failure, /*tell=*/true);
      continue;
    }
    const std::string sign = transport_.Get(AliveKey(rank)).value_or("");
    if (sign != signs_[rank].last) {
      signs_[rank] = {sign, Clock::now()};
    } else if (Clock::now() - signs_[rank].since >= kSilence) {
      Lose("rank " + std::to_string(rank));
    }
  }
  WatchForHang();
  if (!stop_told_ && CancelRequested()) {
    transport_.Put(kStopKey, "1");
    stop_told_ = true;
  }
}

void Ranks::WatchLeader() {
  if (const std::optional<std::string> code = transport_.Get(kOverKey)) _exit(std::atoi(code->c_str()));
  if (!stop_told_ && transport_.Get(kStopKey)) {
    RequestCancel();
    stop_told_ = true;
  }
  const std::string sign = transport_.Get(AliveKey(0)).value_or("");
  if (sign != signs_[0].last) {
    signs_[0] = {sign, Clock::now()};
  } else if (Clock::now() - signs_[0].since >= kSilence) {
    Lose("rank 0");
  }
}

void Ranks::Lose(const std::string& who) {
  // All followers miss the leader, so only rank 1 reports it.
  if (rank_ > 1) _exit(kFailedCode);
  LeaveWith(who + " is lost: it has ended, or has given no sign of life for " + std::to_string(kSilence.count()) + " s",
            leads() && who != PlaceOwner());
}

// Logs the message and ends this process. `tell`: the other ranks can still be reached.
void Ranks::LeaveWith(std::string message, bool tell) {
  HideKeys(&message);  // a follower's message was not checked for keys before
  {
    const std::lock_guard lock(mutex_);
    message += "; the run ends on all ranks" + (way_on_.empty() ? "" : "; " + way_on_);
  }
  spdlog::error("{}", message);
  spdlog::default_logger()->flush();
  if (tell) {
    try {
      transport_.Put(kOverKey, std::to_string(kFailedCode));
      std::this_thread::sleep_for(kBeat + kBeat / 2);
    } catch (const Error&) {
      // The others will notice that the leader is gone.
    }
  }
  _exit(kFailedCode);
}

void OnAllRanks(Ranks* ranks, const std::function<Json()>& order, const std::function<void()>& work) {
  if (ranks == nullptr) return work();
  ranks->Order(order());
  ranks->Together([&] {
    work();
    return std::string();
  });
}

void InStepOnAllRanks(Ranks* ranks, const std::function<Json()>& order, const std::function<void()>& work) {
  if (ranks == nullptr) return work();
  ranks->Order(order());
  ranks->InStep(work);
}

}  // namespace kgrpo
