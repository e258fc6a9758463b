// Exclusive use of devices: what kgrpo_host_interface.lock_device offers. Within this process by name; among the
// processes of one machine by a lock file a device (MachineLock), so that two runs on one GPU don't disturb each
// other's timing. All instances of a run share one of these.
//
// Both serve waiters in order. A policy that releases the device between two batches and asks for it again at once
// therefore does not starve waiting evaluators.
#ifndef KGRPO_BASE_DEVICE_LOCKS_H
#define KGRPO_BASE_DEVICE_LOCKS_H

#include <sys/types.h>  // off_t

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace kgrpo {

// One device's lock among the processes of a machine: a line in which each waits in the order of arrival. Used only
// from the thread that holds the device within its process.
//
// A place in the line is a lock on one byte of IDENTITY.lock; a newcomer takes the byte behind the last that is locked,
// and who has no locked byte before its own has the device. The kernel releases a place when its process ends, however
// it ends.
class MachineLock {
 public:
  // Makes the folder, for this user alone, and the files. Throws kgrpo::Error(UNAVAILABLE) if that fails or another
  // user owns the folder.
  MachineLock(const std::filesystem::path& directory, const std::string& identity);
  ~MachineLock();
  MachineLock(const MachineLock&) = delete;
  MachineLock& operator=(const MachineLock&) = delete;

  // Returns true if the lock is taken, false if others are before this one. A waiter keeps its place from call to call.
  // Throws kgrpo::Error(UNAVAILABLE) if the system refuses locks.
  bool TryTake();
  // Releases the lock, or the place in the line.
  void Release();

  const std::filesystem::path& path() const { return path_; }  // path of IDENTITY.lock

 private:
  bool OthersHold(off_t begin, off_t bytes) const;
  void TakePlace();

  std::filesystem::path path_;
  int line_ = -1;     // descriptor
  off_t place_ = -1;  // the byte that is locked; -1: none
};

class DeviceLocks {
 public:
  struct Options {
    // Returns a device's name on this machine, the same in every process ("GPU-8a3f..."); empty if the device needs no
    // lock against other processes. Called once for each device.
    std::function<std::string(const std::string& device)> identity;
    std::filesystem::path directory;              // folder of the lock files
    std::function<void(const std::string&)> say;  // a line for the user
  };

  DeviceLocks() = default;  // within this process alone
  explicit DeviceLocks(Options options) : options_(std::move(options)) {}

  // Blocks until the device is free. "cuda" is "cuda:0". Once the user asked to stop, the call no longer waits for
  // other processes: the work that remains is short and must not fail (a last checkpoint). Throws
  // kgrpo::Error(INTERNAL) if this thread already holds the device: the call would wait for itself, and UNAVAILABLE if
  // the lock between processes fails; the caller then does not hold the device. [any thread]
  void Lock(std::string_view device);

  // Ends the calling thread's use of the device. Throws INTERNAL when it does not hold it. [the thread that locked]
  void Unlock(std::string_view device);

  // Seconds that the calling thread has waited in Lock, on any DeviceLocks object, since the thread began.
  static double SecondsWaited();
  // The same, summed over all threads.
  static double AllSecondsWaited();

 private:
  struct Device {
    std::deque<std::thread::id> line;  // the first has the device, the others wait in this order
    bool opened = false;               // opening `machine` was tried; set by the thread that holds the device
    std::unique_ptr<MachineLock> machine;
    bool said = false;  // the user was told that another process holds the device
  };

  void OpenMachineLock(const std::string& name, Device& device);
  void LockMachine(const std::string& name, Device& device);
  void Say(const std::string& text) const;

  Options options_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::map<std::string, Device> devices_;  // never shrinks
};

// $KGRPO_LOCK_DIR (for a folder that several users share), else /tmp/kgrpo-UID: one folder for all processes of a user,
// independent of their other environment variables.
std::filesystem::path MachineLockDirectory();

// "cuda:1" -> "GPU-8a3f...", by the NVIDIA driver; empty for other devices and where there is no driver.
std::string CudaDeviceIdentity(const std::string& device);

}  // namespace kgrpo
#endif
