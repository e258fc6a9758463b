// SPDX-License-Identifier: Apache-2.0
// kgrpo/sdk/host.h - what the host offers, as C++: log lines, metrics, random numbers, folders, the device lock.
#ifndef KGRPO_SDK_HOST_H
#define KGRPO_SDK_HOST_H
#include <kgrpo/host.h>
#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace kgrpo {

// Description of a metric; kgrpo_metric_declaration documents each member.
struct MetricDeclaration {
  std::string_view name, label, group;
  kgrpo_metric_kind kind = KGRPO_METRIC_NUMBER;
  std::string_view unit = {};
  kgrpo_metric_direction direction = KGRPO_METRIC_NEUTRAL;
  kgrpo_metric_combination combination = KGRPO_METRIC_MEAN;

  kgrpo_metric_declaration ToC() const {  // borrows from this
    return {sizeof(kgrpo_metric_declaration),
            static_cast<uint32_t>(kind),
            Str(name),
            Str(label),
            Str(unit),
            Str(group),
            static_cast<uint32_t>(direction),
            static_cast<uint32_t>(combination)};
  }
};

// A view of a kgrpo_host; copies refer to the same. Any thread.
class Host {
 public:
  explicit Host(const kgrpo_host* host)
      : host_(host),
        api_(static_cast<const kgrpo_host_interface*>(
            host->get_interface(host->context, KGRPO_LITERAL(KGRPO_HOST_INTERFACE)))) {}

  void Debug(std::string_view message) const { Log(KGRPO_LOG_DEBUG, message); }
  void Info(std::string_view message) const { Log(KGRPO_LOG_INFO, message); }
  void Warn(std::string_view message) const { Log(KGRPO_LOG_WARNING, message); }
  void Log(kgrpo_log_level level, std::string_view message) const { api_->log(context(), level, Str(message)); }

  void Declare(const MetricDeclaration& metric) const {
    const kgrpo_metric_declaration declaration = metric.ToC();
    Check(api_->declare_metric(context(), &declaration));
  }
  // Hands each declaration of any instance to `use`, in order; must not throw.
  template <typename Use>
  void ForEachDeclaration(Use use) const {
    api_->list_metrics(context(), {&use, [](void* target, const kgrpo_metric_declaration* declaration) {
                                     (*static_cast<Use*>(target))(*declaration);
                                   }});
  }
  void Metric(std::string_view name, double value) const { api_->add_metric(context(), Str(name), value); }

  bool Cancelled() const { return api_->cancelled(context()) != 0; }
  // Throws KGRPO_ERROR_CANCELLED once the user asked to stop.
  void ThrowIfCancelled() const {
    if (Cancelled()) throw Error(KGRPO_ERROR_CANCELLED, "cancelled");
  }
  void RequestStop(std::string_view reason) const { api_->request_stop(context(), Str(reason)); }

  std::string ArtifactDirectory() const { return Copy(api_->artifact_directory(context())); }
  std::string CacheDirectory() const { return Copy(api_->cache_directory(context())); }

  // The host's version, and the folder of the plugin's library.
  std::string HostVersion() const { return Copy(api_->host_version(context())); }
  std::string PluginDirectory() const { return Copy(api_->plugin_directory(context())); }

  // Throws if the device cannot be locked. See DeviceLock and DeviceTurn.
  void LockDevice(std::string_view device) const { Check(api_->lock_device(context(), Str(device))); }
  void UnlockDevice(std::string_view device) const { api_->unlock_device(context(), Str(device)); }

  // 64 random bits: a pure function of the run's seed, the instance's name, the key and the index.
  uint64_t Random(std::initializer_list<uint64_t> key, uint64_t index) const {
    return api_->random(context(), key.begin(), key.size(), index);
  }
  // Uniform in [0, 1), 53 bits.
  double Uniform(std::initializer_list<uint64_t> key, uint64_t index) const {
    return static_cast<double>(Random(key, index) >> 11) * 0x1p-53;
  }
  // Uniform in [0, bound), bound > 0; by multiplication, whose bias of bound / 2^64 is below notice.
  __extension__ typedef unsigned __int128 Wide;
  uint64_t Below(uint64_t bound, std::initializer_list<uint64_t> key, uint64_t index) const {
    return static_cast<uint64_t>((static_cast<Wide>(Random(key, index)) * bound) >> 64);
  }

  const kgrpo_host* raw() const { return host_; }

 private:
  void* context() const { return host_->context; }

  const kgrpo_host* host_;
  const kgrpo_host_interface* api_;
};

// Exclusive use of a device while it lives; locked and unlocked by one thread.
class DeviceLock {
 public:
  DeviceLock(const Host& host, std::string device) : host_(host), device_(std::move(device)) {
    host_.LockDevice(device_);
  }
  ~DeviceLock() { host_.UnlockDevice(device_); }
  DeviceLock(const DeviceLock&) = delete;
  DeviceLock& operator=(const DeviceLock&) = delete;

 private:
  Host host_;
  std::string device_;
};

// Use of a device by work that can pause between its pieces (a token of each sequence; one piece of at most
// max_tokens_per_forward tokens), so that others who wait for the device are not kept from it for long. One thread.
class DeviceTurn {
 public:
  static constexpr std::chrono::milliseconds kSlice{200};

  // Takes the device. `settle` waits until the device has finished this work's operations; it is called before every
  // unlock. `used` receives the seconds of each hold, after the unlock; it must not throw. Both may be empty.
  DeviceTurn(const Host& host, std::string device, std::function<void()> settle,
             std::function<void(double seconds)> used = {})
      : host_(host), device_(std::move(device)), settle_(std::move(settle)), used_(std::move(used)) {
    Resume();
  }
  ~DeviceTurn() {
    if (!held_) return;
    try {
      if (settle_) settle_();
    } catch (...) {
      // Another error is propagating: without one, the user would have called Pause, which throws this one.
    }
    Unlock();
  }
  DeviceTurn(const DeviceTurn&) = delete;
  DeviceTurn& operator=(const DeviceTurn&) = delete;

  // True once the device has been held for kSlice: then pause.
  bool SliceIsOver() const { return std::chrono::steady_clock::now() - since_ >= kSlice; }

  // Releases the device; call it at the end of the work too. Throws what `settle` throws, after releasing the device.
  void Pause() {
    if (!held_) return;
    try {
      if (settle_) settle_();
    } catch (...) {
      Unlock();
      throw;
    }
    Unlock();
  }

  // Takes the device again, after the waiters.
  void Resume() {
    if (held_) return;
    host_.LockDevice(device_);
    held_ = true;
    since_ = std::chrono::steady_clock::now();
  }

 private:
  void Unlock() {
    held_ = false;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - since_;
    host_.UnlockDevice(device_);
    if (used_) used_(seconds.count());
  }

  Host host_;
  std::string device_;
  std::function<void()> settle_;
  std::function<void(double)> used_;
  bool held_ = false;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace kgrpo
#endif
