// Exclusive use of devices within this process, by name: what kgrpo_host.lock_device offers. All instances share one.
#ifndef KGRPO_HOST_DEVICE_LOCKS_H
#define KGRPO_HOST_DEVICE_LOCKS_H

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace kgrpo {

class DeviceLocks {
 public:
  // Blocks until the device is free. Throws kgrpo::Error: INTERNAL when this thread holds it already (it would wait for
  // itself), CANCELLED when the user asked to stop meanwhile. [any thread]
  void Lock(std::string_view device);

  // Ends the calling thread's use of the device. Throws INTERNAL when it does not hold it. [the thread that locked]
  void Unlock(std::string_view device);

 private:
  std::mutex mutex_;
  std::condition_variable freed_;
  std::map<std::string, std::thread::id, std::less<>> owners_;  // devices in use
};

}  // namespace kgrpo
#endif
