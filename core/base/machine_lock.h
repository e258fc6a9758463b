// One device's lock among the processes of a machine: a line in which each waits in the order of arrival. Called by
// device_locks.cc, only from the thread that holds the device within its process.
//
// A place in the line is a lock on one byte of IDENTITY.lock; a newcomer takes the byte behind the last that is locked,
// and who has no locked byte before its own has the device. The kernel releases a place when its process ends, however
// it ends.
#ifndef KGRPO_BASE_MACHINE_LOCK_H
#define KGRPO_BASE_MACHINE_LOCK_H

#include <sys/types.h>  // off_t

#include <filesystem>
#include <string>

namespace kgrpo {

// $KGRPO_LOCK_DIR (for a folder that several users share), else /tmp/kgrpo-UID: one folder for all processes of a user,
// independent of their other environment variables.
std::filesystem::path MachineLockDirectory();

// "cuda:1" -> "GPU-8a3f...", by the NVIDIA driver; empty for other devices and where there is no driver.
std::string CudaDeviceIdentity(const std::string& device);

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

}  // namespace kgrpo
#endif
