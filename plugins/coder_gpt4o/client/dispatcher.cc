#include "coder_gpt4o/client/dispatcher.h"

#include <kgrpo/sdk/error.h>
#include <pthread.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <limits>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "coder_shared/text.h"
#include "process/subprocess.h"

namespace kgrpo::coder_gpt4o {
namespace {

using process::Subprocess;

// What the shell command of api_key_command writes to its standard output, without blanks around it. Throws
// Error(KGRPO_ERROR_UNAVAILABLE) if it fails, writes nothing, or takes more than a minute. Its standard error is
// dropped.
std::string KeyOfCommand(const std::string& command) {
  constexpr double kSeconds = 60;
  constexpr size_t kLongest = size_t{64} << 10;
  const Subprocess::Result result =
      Subprocess::Run({.argv = {"/bin/sh", "-c", "exec 2>/dev/null\n" + command}}, kSeconds, kLongest);
  const std::string key(coder_shared::Trimmed(result.output));
  if (result.Succeeded() && !result.output_cut && !key.empty()) return key;
  const char* why = result.timed_out     ? "did not end within a minute"
                    : result.output_cut  ? "wrote more than a key"
                    : result.Succeeded() ? "wrote nothing to its standard output"
                                         : "failed";
  throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("api_key_command ") + why + ": run it in a shell to see why");
}

constexpr double kForever = std::numeric_limits<double>::infinity();

// Adds the keys for streaming to a JSON object's text.
std::string StreamingBody(const std::string& body, bool usage) {
  const size_t end = body.find_last_of('}');
  const bool empty = body.find_first_not_of(" \t\r\n", body.find('{') + 1) == end;
  std::string streaming = body.substr(0, end);
  if (!empty) streaming += ',';
  streaming += usage ? R"("stream":true,"stream_options":{"include_usage":true}})" : R"("stream":true})";
  return streaming;
}

CURLM* NewMulti(uint32_t connections) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });  // never undone: others may use curl too
  CURLM* multi = curl_multi_init();
  if (multi == nullptr)
    throw Error(KGRPO_ERROR_UNAVAILABLE, "libcurl cannot be started: too many open files? See ulimit -n");
  curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, static_cast<long>(connections));  // kept open between transfers
  return multi;
}

// As std::erase_if, but `taken` may move from an element that it erases.
template <typename Map, typename Taken>
void EraseIf(Map& map, Taken taken) {
  for (auto it = map.begin(); it != map.end();) it = taken(*it) ? map.erase(it) : std::next(it);
}

}  // namespace

Dispatcher::Dispatcher(const ClientOptions& options)
    : options_(options),
      endpoint_(options, [this] { resolved_ = true; }),
      multi_(NewMulti(options.max_concurrency)),
      limiter_(options),
      stream_usage_(options.stream && options.stream_usage) {
  options_.api_key.clear();
  options_.headers.clear();
  options_.secrets.clear();
  // The thread inherits the mask, so that signals go to the host's own threads only.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { Run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread_.native_handle(), "kgrpo-coder");
}

Dispatcher::~Dispatcher() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  curl_multi_wakeup(multi_.get());
  thread_.join();
}

void Dispatcher::Send(CompletionRequest asked, Done done) {
  {
    const std::lock_guard lock(mutex_);
    inbox_.push_back({next_id_++, std::move(asked), std::move(done), Now(), {}});
    if (inbox_.size() > 1) return;  // the first Send has already woken the thread
  }
  curl_multi_wakeup(multi_.get());
}

void Dispatcher::Cancel() {
  {
    const std::lock_guard lock(mutex_);
    cancel_before_ = next_id_;
  }
  curl_multi_wakeup(multi_.get());
}

void Dispatcher::Run() {
  for (bool stopped = false;;) {
    std::vector<Request> inbox;
    uint64_t cancel_before = 0;
    bool stopping = false;
    {
      const std::lock_guard lock(mutex_);
      inbox.swap(inbox_);
      stopping = stopping_;
      cancel_before = stopping ? next_id_ : std::exchange(cancel_before_, 0);
    }
    if (stopping && inbox.empty() && stopped) return;
    for (Request& request : inbox) ready_.emplace(request.id, std::move(request));
    if (cancel_before > 0) CancelBefore(cancel_before);
    if (!stopping) Turn();
    stopped = stopping;  // everything was cancelled once; callbacks may have sent more requests meanwhile
  }
}

void Dispatcher::Notice(std::string message) const {
  if (!options_.notice) return;
  endpoint_.Secrets().Apply(message);
  options_.notice(message);
}

void Dispatcher::CancelBefore(uint64_t id) {
  std::vector<Request> cancelled;
  const auto take_waiting = [&](auto& entry) {
    if (entry.second.id >= id) return false;
    cancelled.push_back(std::move(entry.second));
    return true;
  };
  EraseIf(ready_, take_waiting);
  EraseIf(delayed_, take_waiting);
  std::vector<CURL*> whole;  // complete answers, which are paid for
  EraseIf(running_, [&](auto& entry) {
    auto& [handle, attempt] = entry;
    if (attempt.request.id >= id) return false;
    if (attempt.transfer->Whole()) {
      whole.push_back(handle);
      return false;
    }
    curl_multi_remove_handle(multi_.get(), handle);
    if (attempt.probe) limiter_.OnProbeDropped();
    // A service that has refused every other call does not bill this one.
    const bool taken_on = !end_ || end_->status < 300 || answered_;
    if (taken_on) NoteLost(attempt);
    cancelled.push_back(std::move(attempt.request));
    return true;
  });
  for (Request& request : cancelled) Finish(request, Outcome::kCancelled, "cancelled", "cancelled");
  for (CURL* handle : whole) Conclude(handle, true, CURLE_OK);
}

void Dispatcher::Turn() {
  const double now = Now();
  WakeDelayed(now);
  if (end_) {
    for (auto& [when, request] : std::exchange(delayed_, {})) ready_.emplace(request.id, std::move(request));
    for (auto& [id, request] : std::exchange(ready_, {})) FinishAsEnded(request);
  }
  const double start = StartWhatMay(now);
  Poll(std::min(start, NextEvent(now)));

  ConcludeDone();
  if (Silent().empty()) return;
  // Callbacks or the machine may have delayed this thread, so that data that arrived in time is still unread.
  Poll(0);
  const std::vector<CURL*> silent = Silent();  // before the callbacks below delay it again
  ConcludeDone();
  for (CURL* handle : silent) {
    if (running_.contains(handle)) Conclude(handle, true, CURLE_OK);
  }
}

// Waits for network activity, Wake or the end of `seconds`; then lets each transfer process its data.
void Dispatcher::Poll(double seconds) {
  int running = 0;
  curl_multi_poll(multi_.get(), nullptr, 0, static_cast<int>(std::ceil(std::clamp(seconds, 0.0, 3600.0) * 1000)),
                  nullptr);
  curl_multi_perform(multi_.get(), &running);
}

// The transfers past their deadline.
std::vector<CURL*> Dispatcher::Silent() const {
  const double now = Now();
  std::vector<CURL*> silent;
  for (const auto& [handle, attempt] : running_) {
    if (attempt.transfer->Deadline() <= now) silent.push_back(handle);
  }
  return silent;
}

void Dispatcher::ConcludeDone() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &left))
    Conclude(message->easy_handle, false, message->data.result);
}

// Makes delayed requests ready whose backoff is over.
void Dispatcher::WakeDelayed(double now) {
  for (auto it = delayed_.begin(); it != delayed_.end() && it->first <= now; it = delayed_.erase(it))
    ready_.emplace(it->second.id, std::move(it->second));
}

// Gets a key from api_key_command if there is none or it has expired. Returns false if that fails, which ends the run.
bool Dispatcher::RenewKey() {
  if (options_.api_key_command.empty() || (key_ > 0 && !key_expired_)) return true;
  try {
    endpoint_.SetKey(KeyOfCommand(options_.api_key_command));
  } catch (const Error& error) {
    EndRun("unauthorized", error.what(), 0);
    return false;
  }
  ++key_;
  key_worked_ = key_expired_ = false;
  return true;
}

// Starts all requests that may be sent now. Returns the seconds until the next may be sent; infinity if that depends on
// something other than time.
double Dispatcher::StartWhatMay(double now) {
  while (!ready_.empty()) {
    // Until the host name is resolved, only one request is sent: curl would resolve it in a thread per connection.
    const size_t most = resolved_ ? limiter_.Most(now) : 1;
    const double wait = limiter_.Wait(now);
    if (!limiter_.Down()) TellLongWait(now, wait);
    if (running_.size() >= most) return kForever;
    if (wait > 0) return wait;
    const auto next = Next();
    if (!RenewKey()) return 0;
    const auto& may_send = next->second.asked.may_send;
    const Leave leave = may_send ? may_send(next->second.result.lost) : Leave::kSend;
    if (leave == Leave::kWait) return kForever;
    if (leave == Leave::kNever) {
      Request request = std::move(next->second);
      ready_.erase(next);
      Finish(request, Outcome::kFailed, "budget");
      continue;
    }
    Start(next, now);
  }
  return kForever;
}

// The oldest ready request. A probe takes the request with the fewest attempts instead: the oldest might be the one
// prompt that crashes the service.
Dispatcher::Waiting::iterator Dispatcher::Next() {
  if (!limiter_.Down()) return ready_.begin();
  return std::min_element(ready_.begin(), ready_.end(), [](const auto& a, const auto& b) {
    return a.second.result.attempts < b.second.result.attempts;
  });
}

void Dispatcher::Start(Waiting::iterator next, double now) {
  Attempt attempt;
  attempt.request = std::move(next->second);
  ready_.erase(next);
  ++attempt.request.result.attempts;
  attempt.probe = limiter_.OnSend();
  attempt.asked_usage = stream_usage_;
  attempt.key = key_;
  AttemptTimes times = {options_.response_timeout_seconds, options_.idle_timeout_seconds};
  if (attempt.probe) times.sign_by = now + limiter_.ProbeSeconds(now);
  const std::string& body = attempt.request.asked.body;
  attempt.transfer =
      std::make_unique<Transfer>(endpoint_, options_.stream ? StreamingBody(body, attempt.asked_usage) : body,
                                 options_.stream, times, options_.max_answer_bytes, now,
                                 [this, tokens = attempt.request.asked.tokens_at_most](const ResponseHeaders& headers) {
                                   limiter_.Learn(Now(), headers, tokens);
                                 });
  CURL* handle = attempt.transfer->Handle();
  running_.emplace(handle, std::move(attempt));
  curl_multi_add_handle(multi_.get(), handle);
}

double Dispatcher::NextEvent(double now) {
  double next = kForever;
  if (!delayed_.empty()) next = delayed_.begin()->first;
  for (const auto& [handle, attempt] : running_) next = std::min(next, attempt.transfer->Deadline());
  return std::max(0.0, next - now);
}

}  // namespace kgrpo::coder_gpt4o
