#include "base/machine_lock.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/gpu_uuid.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace kgrpo {
namespace {

[[noreturn]] void Fail(const std::filesystem::path& path, const std::string& why) {
  throw Error(KGRPO_ERROR_UNAVAILABLE,
              "no lock file for the device: " + path.string() + ": " + why + " (KGRPO_LOCK_DIR names another folder)");
}

bool IsShared() {
  const char* shared = std::getenv("KGRPO_LOCK_DIR");
  return shared != nullptr && *shared != '\0';
}

// Every user can write to /tmp, so a link or another user's folder there is refused.
void MakeDirectory(const std::filesystem::path& directory) {
  if (::mkdir(directory.c_str(), S_IRWXU) != 0 && errno != EEXIST) Fail(directory, std::strerror(errno));
  if (IsShared()) return;
  struct stat status;
  if (::lstat(directory.c_str(), &status) != 0) Fail(directory, std::strerror(errno));
  if (!S_ISDIR(status.st_mode) || status.st_uid != ::geteuid()) Fail(directory, "it is not a folder of this user");
}

// flock needs no right to write, so users who share a folder need none on each other's files. O_CLOEXEC: a child
// process with the descriptor would keep the lock.
int Open(const std::filesystem::path& path) {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW;
  // An existing file is opened without O_CREAT: in a folder like /tmp Linux refuses it on another user's file.
  int descriptor = ::open(path.c_str(), kFlags);
  if (descriptor < 0 && errno == ENOENT) {
    descriptor = ::open(path.c_str(), kFlags | O_CREAT, 0644);
    if (descriptor >= 0) ::fchmod(descriptor, 0644);  // despite the umask: others must be able to read it
  }
  if (descriptor < 0) Fail(path, std::strerror(errno));
  return descriptor;
}

bool TryLock(int descriptor, const std::filesystem::path& path) {
  int result;
  do {
    result = ::flock(descriptor, LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  if (result != 0 && errno != EWOULDBLOCK) Fail(path, std::strerror(errno));
  return result == 0;
}

// The driver's functions as cuda.h declares them, because the host is built without CUDA.
using CuInit = int (*)(unsigned int flags);
using CuDeviceGet = int (*)(int* device, int ordinal);
using CuDeviceGetUuid = int (*)(unsigned char uuid[16], int device);

}  // namespace

std::filesystem::path MachineLockDirectory() {
  if (IsShared()) return std::getenv("KGRPO_LOCK_DIR");
  return "/tmp/kgrpo-" + std::to_string(::geteuid());
}

std::string CudaDeviceIdentity(const std::string& device) {
  if (device.rfind("cuda:", 0) != 0) return "";
  void* driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);  // stays open, as CUDA's own users keep it
  if (driver == nullptr) return "";
  const auto init = reinterpret_cast<CuInit>(::dlsym(driver, "cuInit"));
  const auto get = reinterpret_cast<CuDeviceGet>(::dlsym(driver, "cuDeviceGet"));
  const auto get_uuid = reinterpret_cast<CuDeviceGetUuid>(::dlsym(driver, "cuDeviceGetUuid_v2"));
  if (init == nullptr || get == nullptr || get_uuid == nullptr) return "";
  int handle = 0;
  unsigned char uuid[16];
  if (init(0) != 0 || get(&handle, std::atoi(device.c_str() + 5)) != 0 || get_uuid(uuid, handle) != 0) return "";
  return GpuUuidText(uuid);
}

MachineLock::MachineLock(const std::filesystem::path& directory, const std::string& identity)
    : path_(directory / (identity + ".lock")) {
  MakeDirectory(directory);
  lock_ = Open(path_);
  try {
    next_ = Open(directory / (identity + ".next"));
  } catch (...) {
    ::close(lock_);
    throw;
  }
}

MachineLock::~MachineLock() {
  ::close(lock_);
  ::close(next_);
}

bool MachineLock::TryTake() {
  if (!is_next_) is_next_ = TryLock(next_, path_);
  if (!is_next_ || !TryLock(lock_, path_)) return false;
  ::flock(next_, LOCK_UN);
  is_next_ = false;
  return true;
}

void MachineLock::Release() {
  if (std::exchange(is_next_, false)) ::flock(next_, LOCK_UN);
  ::flock(lock_, LOCK_UN);
}

}  // namespace kgrpo
