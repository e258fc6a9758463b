// Counts requests of one instance that a plugin has accepted and not answered, so that the instance is not destroyed
// under them. Used by plugin/policy_instance.cc and plugin/coder_instance.cc.
#ifndef KGRPO_PLUGIN_IN_FLIGHT_H
#define KGRPO_PLUGIN_IN_FLIGHT_H

#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace kgrpo {

// Any thread.
class InFlight {
 public:
  void Add(size_t count) {
    const std::lock_guard lock(mutex_);
    count_ += count;
  }
  void Remove(size_t count) {
    const std::lock_guard lock(mutex_);
    if ((count_ -= count) == 0) none_.notify_all();
  }
  bool any() const {
    const std::lock_guard lock(mutex_);
    return count_ > 0;
  }
  void WaitForNone() {
    std::unique_lock lock(mutex_);
    none_.wait(lock, [this] { return count_ == 0; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable none_;
  size_t count_ = 0;
};

}  // namespace kgrpo
#endif
