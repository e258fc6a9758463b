// One device's lock among the processes of a machine: advisory locks (flock) on two files, which the kernel releases
// when a process ends, however it ends. Called by device_locks.cc, only from the thread that holds the device within
// its process.
//
// The process that has the device holds IDENTITY.lock; the first waiter holds IDENTITY.next. With flock alone, a
// process that releases the device and takes it again at once would keep all others away.
#ifndef KGRPO_BASE_MACHINE_LOCK_H
#define KGRPO_BASE_MACHINE_LOCK_H

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

  // Returns true if the lock is taken, false if another process has it. The first waiter keeps its place from call to
  // call. Throws kgrpo::Error(UNAVAILABLE) if flock fails.
  bool TryTake();
  // Releases the lock, or the place as the next.
  void Release();

  const std::filesystem::path& path() const { return path_; }  // path of IDENTITY.lock

 private:
  std::filesystem::path path_;
  int lock_ = -1, next_ = -1;  // descriptors
  bool is_next_ = false;       // IDENTITY.next is held
};

}  // namespace kgrpo
#endif
