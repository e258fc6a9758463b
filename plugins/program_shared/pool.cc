#include "program_shared/pool.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/support/dump_json.h>

#include <condition_variable>
#include <future>
#include <iterator>
#include <utility>

#include "program_shared/copy.h"
#include "program_shared/options.h"

namespace kgrpo::program {

using nlohmann::json;

Pool::Pool(const Host& host, std::string role, PoolOptions options)
    : host_(host), role_(std::move(role)), options_(std::move(options)) {
  for (size_t i = 0; i < options_.copies; ++i) copies_.push_back(std::make_unique<Copy>(this));
  hello_ = std::async(std::launch::async, [this] {
             BlockSignals();
             return copies_[0]->Start();
           }).get();
  std::string named = hello_.name;
  if (!hello_.version.empty()) named += (named.empty() ? "" : ", ") + std::string("version ") + hello_.version;
  description_ = "a program: " + Joined(options_.command) + (named.empty() ? "" : " (" + named + ")");
  copies_[0]->up = true;
  DeclareMetrics(host_, hello_.metrics);
  for (const auto& copy : copies_) copy->Begin();
}

Pool::~Pool() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  Cancel();
  copies_.clear();
}

void Pool::Assign() {
  while (!queue_.empty() && !ending_) {
    Copy* chosen = nullptr;
    for (const auto& copy : copies_) {
      const size_t room = copy->up ? hello_.concurrency : 0;
      if (copy->assigned < room && (chosen == nullptr || copy->assigned < chosen->assigned)) chosen = copy.get();
    }
    for (const auto& copy : copies_) {
      if (chosen == nullptr && !copy->up) chosen = copy.get();
    }
    if (chosen == nullptr) return;
    chosen->up = true;
    ++chosen->assigned;
    chosen->inbox.push_back(std::move(queue_.front()));
    queue_.pop_front();
    chosen->Wake();
  }
}

void Pool::Returned(Copy& copy, size_t requests) {
  const std::lock_guard lock(mutex_);
  copy.assigned -= requests;
  Assign();
}

void Pool::Lost(Copy& copy, size_t requests, std::deque<Request> again) {
  {
    const std::lock_guard lock(mutex_);
    copy.up = false;
    copy.assigned -= requests + copy.inbox.size();
    again.insert(again.end(), std::make_move_iterator(copy.inbox.begin()), std::make_move_iterator(copy.inbox.end()));
    copy.inbox.clear();
    if (!ending_) {
      queue_.insert(queue_.begin(), std::make_move_iterator(again.begin()), std::make_move_iterator(again.end()));
      again.clear();
      Assign();
    }
  }
  AnswerCancelled(again);
}

void Pool::Submit(std::string_view method, const nlohmann::ordered_json& params, Done done) {
  SubmitText(method, DumpJson(params), std::move(done));
}

void Pool::SubmitText(std::string_view method, std::string_view text, Done done) {
  if (text.size() > kLongestLine) {
    throw Error(KGRPO_ERROR_INVALID, "a request of " + std::to_string(text.size() >> 20) +
                                         " MiB is too long for a program: at most " +
                                         std::to_string(kLongestLine >> 20) + " MiB are sent");
  }
  const std::lock_guard lock(mutex_);
  Request request;
  request.id = next_id_++;
  request.method = method;
  request.line = RequestLine(request.id, method, text);
  request.done = std::move(done);
  queue_.push_back(std::move(request));
  Assign();
}

json Pool::Call(std::string_view method, const nlohmann::ordered_json& params) {
  return CallText(method, DumpJson(params));
}

json Pool::CallText(std::string_view method, std::string_view params) {
  struct Waiting {
    std::mutex mutex;
    std::condition_variable changed;
    bool answered = false;
    json result;
    std::exception_ptr error;
  };
  const auto waiting = std::make_shared<Waiting>();
  SubmitText(method, params, [waiting](json result, std::exception_ptr error) {
    const std::lock_guard lock(waiting->mutex);
    waiting->result = std::move(result);
    waiting->error = std::move(error);
    waiting->answered = true;
    waiting->changed.notify_one();
  });
  std::unique_lock lock(waiting->mutex);
  while (!waiting->changed.wait_for(lock, std::chrono::milliseconds(100), [&] { return waiting->answered; })) {
    host_.ThrowIfCancelled();
  }
  // Taken out of `waiting`, so that this thread destroys the exception that it reads, and not the answering thread with
  // its copy of the callback.
  if (std::exception_ptr error = std::exchange(waiting->error, nullptr)) std::rethrow_exception(std::move(error));
  return std::move(waiting->result);
}

void Pool::Cancel() {
  std::deque<Request> dropped;
  {
    const std::lock_guard lock(mutex_);
    dropped.swap(queue_);
    cancelled_below_ = next_id_;
  }
  for (const auto& copy : copies_) copy->Wake();
  AnswerCancelled(dropped);
}

void Pool::AnswerCancelled(std::deque<Request>& requests) {
  for (Request& request : requests)
    request.done({}, std::make_exception_ptr(Error(KGRPO_ERROR_CANCELLED, "cancelled")));
}

}  // namespace kgrpo::program
