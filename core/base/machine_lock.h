// One device's lock among the processes of a machine: advisory locks (flock) on two files, which the kernel releases
// when a process ends, however it ends. Called by device_locks.cc, only from the thread that holds the device within
// its process.
//
// IDENTITY.lock is held by the process that has the device, IDENTITY.next by the one that waits for it longest: flock
// alone lets a process that releases and takes again at once keep all others away.
#ifndef KGRPO_BASE_MACHINE_LOCK_H
#define KGRPO_BASE_MACHINE_LOCK_H

#include <filesystem>
#include <string>

namespace kgrpo {

// $KGRPO_LOCK_DIR (for a folder that several users share), else /tmp/kgrpo-UID: the same for all of a user's processes,
// whatever else their environments hold.
std::filesystem::path MachineLockDirectory();

// "cuda:1" -> "GPU-8a3f...", by the NVIDIA driver; empty for other devices and where there is no driver.
std::string CudaDeviceIdentity(const std::string& device);

class MachineLock {
 public:
  // Makes the folder, for this user alone, and the files. Throws kgrpo::Error(UNAVAILABLE) where that cannot be, or the
  // folder is someone else's.
  MachineLock(const std::filesystem::path& directory, const std::string& identity);
  ~MachineLock();
  MachineLock(const MachineLock&) = delete;
  MachineLock& operator=(const MachineLock&) = delete;

  // True: it is taken. False: another process has it; called again and again this one keeps its place in the line.
  bool TryTake();
  // Gives it up, or the place in the line.
  void Release();

  const std::filesystem::path& path() const { return path_; }  // of IDENTITY.lock

 private:
  std::filesystem::path path_;
  int lock_ = -1, next_ = -1;  // descriptors
  bool is_next_ = false;       // IDENTITY.next is held
};

}  // namespace kgrpo
#endif
