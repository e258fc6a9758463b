// Requests of one instance that a plugin has accepted and not ended. Used by plugin/policy_instance.cc and
// plugin/coder_instance.cc.
//
// The `context` of a plugin's `done` is a number, not an address: a plugin that ends a request twice, or one that it
// refused, is detected instead of reaching freed memory. The instance then refuses further requests.
#ifndef KGRPO_PLUGIN_IN_FLIGHT_H
#define KGRPO_PLUGIN_IN_FLIGHT_H

#include <kgrpo/sdk/error.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace kgrpo {

// Result: kgrpo_completion or kgrpo_coder_answer. Any thread.
template <typename Result>
class InFlight {
 public:
  // Receives the plugin's result or error. Must not throw.
  using Handler = std::function<void(const Result* result, kgrpo_error* error)>;

  // `plugin` names the plugin in messages: "coder_x". The instance holds the only shared_ptr.
  static std::shared_ptr<InFlight> Make(std::string plugin) {
    auto made = std::shared_ptr<InFlight>(new InFlight(std::move(plugin)));
    Registry& registry = TheRegistry();
    const std::lock_guard lock(registry.mutex);
    made->number_ = registry.next++;
    registry.instances[made->number_] = made;
    return made;
  }
  ~InFlight() {
    Registry& registry = TheRegistry();
    const std::lock_guard lock(registry.mutex);
    registry.instances.erase(number_);
  }

  // Returns the context for a request that is about to be submitted.
  void* Add(Handler handler) {
    const std::lock_guard lock(mutex_);
    const uint64_t request = next_++;
    waiting_.emplace(request, std::move(handler));
    return reinterpret_cast<void*>(number_ << kRequestBits | request);
  }

  // Forgets a request that the plugin refused. Returns false if the plugin ended it all the same, against the contract:
  // the handler has run then.
  bool Drop(void* context) {
    const std::lock_guard lock(mutex_);
    if (waiting_.erase(reinterpret_cast<uint64_t>(context) & kRequestMask) == 1) return true;
    fault_ = plugin_ + " ended a request that it had refused";
    return false;
  }

  // Throws the plugin's breach of the contract, if there was one.
  void ThrowFault() const {
    const std::lock_guard lock(mutex_);
    if (!fault_.empty()) throw Error(KGRPO_ERROR_INTERNAL, fault_ + ": a fault of that plugin");
  }

  bool any() const {
    const std::lock_guard lock(mutex_);
    return !waiting_.empty() || running_ > 0;
  }

  // Waits until no request is left, with a warning after 10 s. A plugin that never ends a request blocks this call
  // until the process is killed.
  void WaitForNone() {
    std::unique_lock lock(mutex_);
    const auto none = [this] { return waiting_.empty() && running_ == 0; };
    if (none_.wait_for(lock, std::chrono::seconds(10), none)) return;
    spdlog::warn("waiting for {} to end {} cancelled requests", plugin_, waiting_.size() + running_);
    none_.wait(lock, none);
  }

  // The `done` that plugins call. A delivery that no request waits for is recorded as the plugin's fault, if the
  // instance still exists.
  static void Deliver(void* context, const Result* result, kgrpo_error* error) noexcept {
    const auto ticket = reinterpret_cast<uint64_t>(context);
    std::shared_ptr<InFlight> self;
    {
      Registry& registry = TheRegistry();
      const std::lock_guard lock(registry.mutex);
      const auto found = registry.instances.find(ticket >> kRequestBits);
      if (found != registry.instances.end()) self = found->second.lock();
    }
    Handler handler;
    if (self != nullptr) handler = self->Take(ticket & kRequestMask);
    if (!handler) {
      if (error != nullptr) error->release(error);
      return;
    }
    handler(result, error);
    handler = nullptr;  // frees the captures before Finished reports that nothing is left
    self->Finished();
  }

 private:
  static constexpr int kRequestBits = 44;
  static constexpr uint64_t kRequestMask = (uint64_t{1} << kRequestBits) - 1;

  struct Registry {
    std::mutex mutex;
    uint64_t next = 1;
    std::map<uint64_t, std::weak_ptr<InFlight>> instances;
  };
  static Registry& TheRegistry() {
    static auto* registry = new Registry;  // never destroyed: a plugin's thread may deliver while the process ends
    return *registry;
  }

  explicit InFlight(std::string plugin) : plugin_(std::move(plugin)) {}

  Handler Take(uint64_t request) {
    const std::lock_guard lock(mutex_);
    auto node = waiting_.extract(request);
    if (node.empty()) {
      fault_ = plugin_ + (request < next_ ? " ended a request twice" : " ended a request that it never got");
      return nullptr;
    }
    ++running_;
    return std::move(node.mapped());
  }
  void Finished() {
    const std::lock_guard lock(mutex_);
    if (--running_ == 0 && waiting_.empty()) none_.notify_all();
  }

  const std::string plugin_;
  uint64_t number_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable none_;
  uint64_t next_ = 0;
  std::map<uint64_t, Handler> waiting_;
  size_t running_ = 0;  // handlers that are running
  std::string fault_;
};

}  // namespace kgrpo
#endif
