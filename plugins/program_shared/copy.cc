#include "program_shared/copy.h"

#include <kgrpo/sdk/error.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "program_shared/options.h"

namespace kgrpo::program {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr double kGlance = 0.1;  // seconds between checks that a program which owes an answer still lives

std::chrono::nanoseconds Seconds(double seconds) {
  return std::chrono::nanoseconds(static_cast<int64_t>(std::min(seconds, 1e9) * 1e9));
}

std::string Shown(double seconds) {
  const std::string text = json(seconds).dump();
  return (text.ends_with(".0") ? text.substr(0, text.size() - 2) : text) + " s";
}

std::exception_ptr Failure(kgrpo_error_code code, const std::string& message) {
  return std::make_exception_ptr(Error(code, message));
}

}  // namespace

void BlockSignals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

Pool::Copy::Copy(Pool* pool) : pool_(pool), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_ < 0) throw Error(KGRPO_ERROR_UNAVAILABLE, "cannot make an event descriptor");
}

Pool::Copy::~Copy() {
  if (thread_.joinable()) thread_.join();
  connection_.reset();
  close(wake_);
}

void Pool::Copy::Wake() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t count = write(wake_, &one, sizeof one);  // a full counter wakes just as well
}

std::string Pool::Copy::Name() const { return "the program \"" + Joined(pool_->options_.command) + "\""; }

json Pool::Copy::Handshake(uint64_t id, const char* method, const json& params, Clock::time_point deadline) {
  connection_->Send(RequestLine(id, method, params.dump()));
  for (;;) {
    if (pool_->ending_ || pool_->host_.Cancelled()) throw Error(KGRPO_ERROR_CANCELLED, "cancelled");
    if (Clock::now() >= deadline)
      throw Broken("did not answer \"" + std::string(method) + "\" within " + Shown(pool_->options_.start_seconds) +
                   " (start_seconds)");
    const std::vector<std::string> lines = connection_->Wait(kGlance, -1);
    if (lines.empty()) continue;
    Answer answer = ParseAnswer(lines[0]);
    if (answer.id != id) throw Broken("answered request " + std::to_string(answer.id) + " before it was asked");
    if (answer.failed) throw Error(KGRPO_ERROR_INVALID, Name() + " refused: " + answer.error);
    if (lines.size() > 1)
      throw Broken("wrote further lines after its answer to \"" + std::string(method) + "\": " + Excerpt(lines[1]));
    return std::move(answer.result);
  }
}

Hello Pool::Copy::Start() {
  const auto log = [host = pool_->host_](std::string_view line) { host.Info(line); };
  const Clock::time_point deadline = Clock::now() + Seconds(pool_->options_.start_seconds);
  connection_ = std::make_unique<Connection>(pool_->options_.command, log);
  try {
    const json said = Handshake(0, "initialize", {{"protocol", kProtocol}, {"role", pool_->role_}}, deadline);
    Hello hello = ReadHello(said, pool_->role_);
    const json options = CheckProgramOptions(pool_->options_.options, said.value("options_schema", json()));
    const json configured = Handshake(1, "configure", {{"options", options}}, deadline);
    ReadConfigured(configured, &hello);
    return hello;
  } catch (const Broken& broken) {
    connection_->Kill();
    connection_.reset();
    throw Error(KGRPO_ERROR_UNAVAILABLE, Name() + " " + broken.what());
  } catch (...) {
    connection_.reset();
    throw;
  }
}

void Pool::Copy::Begin() {
  thread_ = std::thread([this] { Work(); });
}

void Pool::Copy::Work() {
  BlockSignals();
  while (Take()) {
    try {
      Serve();
      CheckDeadlines();
    } catch (const Broken& broken) {
      Lose(broken.what(), 0);
    } catch (const std::exception& error) {
      Lose(std::string("cannot be spoken with: ") + error.what(), 0);
    }
  }
  connection_.reset();  // here and not in the destructor: all copies end at once
}

// Sends the requests of the inbox. Cancelled requests, in the inbox or in flight, are answered here; the program may
// still answer those in flight too. Returns false once the pool is ending and everything has been answered.
bool Pool::Copy::Take() {
  std::deque<Request> taken, cancelled;
  uint64_t below = 0;
  bool ending = false;
  {
    const std::lock_guard lock(pool_->mutex_);
    ending = pool_->ending_;
    below = ending ? UINT64_MAX : pool_->cancelled_below_;
    for (Request& request : inbox) (request.id < below ? cancelled : taken).push_back(std::move(request));
    inbox.clear();
  }
  CancelFlight(below);
  if (!cancelled.empty()) {
    AnswerCancelled(cancelled);
    pool_->Returned(*this, cancelled.size());
  }
  if (ending) return false;
  if (!taken.empty() && connection_ == nullptr) {
    try {
      Start();
    } catch (const std::exception&) {
      const std::exception_ptr error = std::current_exception();
      for (Request& request : taken) request.done({}, error);
      pool_->Lost(*this, taken.size(), {});
      return true;
    }
  }
  try {
    std::vector<uint64_t> ids;
    for (Request& request : taken) {
      ids.push_back(request.id);
      request.deadline = Clock::now() + Seconds(pool_->options_.request_seconds);
      flight_.emplace(request.id, std::move(request));
    }
    for (const uint64_t id : ids) connection_->Send(flight_.at(id).line);
  } catch (const Broken& broken) {
    Lose(broken.what(), 0);
  }
  return true;
}

// Tells the program to cancel. A request keeps its place until the program has answered it.
void Pool::Copy::CancelFlight(uint64_t below) {
  for (auto& [id, request] : flight_) {
    if (id >= below) break;
    if (!request.done) continue;
    std::exchange(request.done, nullptr)({}, Failure(KGRPO_ERROR_CANCELLED, "cancelled"));
    try {
      connection_->Send(CancelLine(id));
    } catch (const Broken&) {
      // The thread meets this error again when it waits for the answer.
    }
  }
}

// Waits for something to happen, and deals with what the program wrote.
void Pool::Copy::Serve() {
  if (connection_ == nullptr) {
    pollfd waiting = {wake_, POLLIN, 0};
    poll(&waiting, 1, -1);
  } else {
    const std::vector<std::string> lines = connection_->Wait(flight_.empty() ? -1 : kGlance, wake_);
    for (const std::string& line : lines) Receive(line);
  }
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(wake_, &count, sizeof count);
}

void Pool::Copy::Receive(const std::string& line) {
  Answer answer = ParseAnswer(line);
  const auto found = flight_.find(answer.id);
  if (found == flight_.end())
    throw Broken("answered request " + std::to_string(answer.id) + " twice, or was never asked it");
  const Request request = std::move(found->second);
  flight_.erase(found);
  if (request.done) {
    if (answer.failed) {
      request.done({}, Failure(answer.refused ? KGRPO_ERROR_INVALID : KGRPO_ERROR_INTERNAL,
                               Name() + " failed at \"" + request.method + "\": " + answer.error));
    } else {
      request.done(std::move(answer.result), nullptr);
    }
  }
  pool_->Returned(*this, 1);
}

void Pool::Copy::CheckDeadlines() {
  for (const auto& [id, request] : flight_) {
    if (Clock::now() < request.deadline) continue;
    return Lose("did not answer \"" + request.method + "\" within " + Shown(pool_->options_.request_seconds) +
                    " (request_seconds)",
                id);
  }
}

// Ends a program that is broken or late, and hands back its unanswered requests, each for one more attempt by another
// copy. `culprit`: the id of a request that is not sent again, or 0.
void Pool::Copy::Lose(const std::string& why, uint64_t culprit) {
  if (connection_ != nullptr) connection_->Kill();
  connection_.reset();
  std::deque<Request> again;
  const size_t lost = flight_.size();
  for (auto& [id, request] : flight_) {
    if (!request.done) continue;
    if (id == culprit || ++request.attempts > 1) {
      const std::string twice = request.attempts > 1 ? ", at the second attempt" : "";
      request.done({}, Failure(KGRPO_ERROR_UNAVAILABLE, Name() + " " + why + twice));
    } else {
      again.push_back(std::move(request));
    }
  }
  flight_.clear();
  pool_->host_.Warn(Name() + " " + why + ": it is started anew when it is needed" +
                    (again.empty() ? "" : ", and asked " + std::to_string(again.size()) + " again"));
  pool_->Lost(*this, lost, std::move(again));
}

}  // namespace kgrpo::program
