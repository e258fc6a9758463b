#include "serve/evaluation_queue.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/faults.h"

namespace kgrpo::serve {
namespace {

constexpr double kNewest = 0.1;  // weight of the newest job in the mean time of a job

}  // namespace

EvaluationQueue::EvaluationQueue(size_t workers, size_t limit) : limit_(limit) {
  threads_.reserve(workers);
  for (size_t i = 0; i < workers; ++i) threads_.emplace_back([this] { Work(); });
}

EvaluationQueue::~EvaluationQueue() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::shared_ptr<EvaluationQueue::Ticket> EvaluationQueue::Submit(std::vector<std::function<void()>> jobs) {
  const size_t count = jobs.size();
  auto ticket = std::make_shared<Ticket>();
  for (std::function<void()>& job : jobs) ticket->jobs.push_back(std::move(job));
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const size_t busy = std::min<size_t>(running_, threads_.size());
    if (waiting_ + count > limit_ + threads_.size() - busy) return nullptr;
    waiting_ += count;
    tickets_.push_back(ticket);
  }
  wake_.notify_all();
  return ticket;
}

void EvaluationQueue::Cancel(Ticket& ticket) {
  std::deque<std::function<void()>> dropped;  // declared before the lock, so that jobs are destroyed without it
  const std::lock_guard<std::mutex> lock(mutex_);
  dropped.swap(ticket.jobs);
  waiting_ -= dropped.size();
  std::erase_if(tickets_, [&](const std::shared_ptr<Ticket>& one) { return one.get() == &ticket; });
}

double EvaluationQueue::SecondsUntilRoom(size_t jobs) const {
  const size_t over = waiting_ + jobs > limit_ ? waiting_ + jobs - limit_ : 1;
  return static_cast<double>(over) * mean_seconds_ / static_cast<double>(threads_.size());
}

void EvaluationQueue::Work() {
  const AlternateStack stack;
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stop_ || !tickets_.empty(); });
    if (tickets_.empty()) return;
    std::shared_ptr<Ticket> ticket = std::move(tickets_.front());
    tickets_.pop_front();
    std::function<void()> job = std::move(ticket->jobs.front());
    ticket->jobs.pop_front();
    if (!ticket->jobs.empty()) tickets_.push_back(ticket);
    --waiting_;
    ++running_;
    lock.unlock();
    const auto start = std::chrono::steady_clock::now();
    job();
    job = nullptr;
    ticket.reset();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    lock.lock();
    mean_seconds_ = (1 - kNewest) * mean_seconds_ + kNewest * seconds;
    --running_;
  }
}

}  // namespace kgrpo::serve
