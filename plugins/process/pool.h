// Processes of one kind that wait for work, and a helper program that answers requests in frames.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "process/frames.h"
#include "process/subprocess.h"

namespace kgrpo::process {

// A helper program with a socket to this process. Destroying it ends the program. One thread at a time.
class Helper {
 public:
  static constexpr int kSocket = 3;  // the program's descriptor

  // `spec_of` gets our number for the descriptor that the program must have as kSocket.
  explicit Helper(const std::function<Subprocess::Spec(int theirs)>& spec_of) {
    auto [ours, theirs] = MakeSocketPair();
    socket_ = std::move(ours);
    process_.emplace(spec_of(theirs.get()));
  }

  // The answer to a request; nothing where the program has ended or takes longer than `seconds`, or where `stop`, asked
  // several times a second, returns true.
  std::optional<std::vector<std::string>> Ask(const std::vector<std::string>& request, double seconds,
                                              size_t most_bytes = size_t{256} << 20,
                                              const std::function<bool()>& stop = {}) {
    constexpr double kLookSeconds = 0.2;
    std::vector<std::string> answer;
    if (!WriteFrames(socket_.get(), request)) return std::nullopt;
    while (stop && seconds > 0 && !WaitReadable(socket_.get(), kLookSeconds, &seconds)) {
      if (stop()) return std::nullopt;
    }
    if (!ReadFrames(socket_.get(), &answer, seconds, most_bytes)) return std::nullopt;
    ++uses_;
    return answer;
  }

  int uses() const { return uses_; }  // answers so far
  Subprocess& process() { return *process_; }

 private:
  Descriptor socket_;
  std::optional<Subprocess> process_;
  int uses_ = 0;
};

// [any thread]
template <typename Process>
class ProcessPool {
 public:
  // At most `kept` processes wait; `start` makes another.
  ProcessPool(size_t kept, std::function<std::unique_ptr<Process>()> start) : kept_(kept), start_(std::move(start)) {}

  // The process that has waited longest, or a new one.
  std::unique_ptr<Process> Take() {
    std::unique_ptr<Process> process = Pop();
    return process ? std::move(process) : start_();
  }

  // Likewise, and starts another for later.
  std::unique_ptr<Process> TakeAndReplace() {
    std::unique_ptr<Process> next = start_(), process = Pop();
    if (!process) return next;
    Add(std::move(next));
    return process;
  }

  // Lets the process wait for the next Take; ends it if enough do.
  void Add(std::unique_ptr<Process> process) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (waiting_.size() < kept_) waiting_.push_back(std::move(process));
  }

  // Starts as many as may wait.
  void Fill() {
    for (size_t i = 0; i < kept_; ++i) Add(start_());
  }

 private:
  std::unique_ptr<Process> Pop() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (waiting_.empty()) return nullptr;
    std::unique_ptr<Process> process = std::move(waiting_.front());
    waiting_.pop_front();
    return process;
  }

  const size_t kept_;
  const std::function<std::unique_ptr<Process>()> start_;
  std::mutex mutex_;
  std::deque<std::unique_ptr<Process>> waiting_;
};

}  // namespace kgrpo::process
