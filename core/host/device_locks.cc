#include "host/device_locks.h"

#include <kgrpo/sdk/error.h>

#include <chrono>

#include "host/cancel.h"

namespace kgrpo {

void DeviceLocks::Lock(std::string_view device) {
  std::unique_lock lock(mutex_);
  for (;;) {
    auto owner = owners_.find(device);
    if (owner == owners_.end()) break;
    if (owner->second == std::this_thread::get_id()) {
      throw Error(KGRPO_ERROR_INTERNAL, "this thread holds the lock of device \"" + std::string(device) +
                                            "\" already: locking it again would wait for ever");
    }
    if (CancelRequested()) {
      throw Error(KGRPO_ERROR_CANCELLED, "cancelled while waiting for device \"" + std::string(device) + "\"");
    }
    freed_.wait_for(lock,
                    std::chrono::milliseconds(50));  // a signal handler cannot notify: look at the flag now and then
  }
  owners_.emplace(device, std::this_thread::get_id());
}

void DeviceLocks::Unlock(std::string_view device) {
  {
    std::lock_guard lock(mutex_);
    auto owner = owners_.find(device);
    if (owner == owners_.end() || owner->second != std::this_thread::get_id()) {
      throw Error(KGRPO_ERROR_INTERNAL,
                  "device \"" + std::string(device) + "\" is unlocked by a thread that did not lock it");
    }
    owners_.erase(owner);
  }
  freed_.notify_all();
}

}  // namespace kgrpo
