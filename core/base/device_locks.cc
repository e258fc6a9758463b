#include "base/device_locks.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/gpu_uuid.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/cancel.h"

namespace kgrpo {
namespace {

using Clock = std::chrono::steady_clock;

thread_local double seconds_waited = 0;
std::atomic<double> all_seconds_waited = 0;

std::string NameOf(std::string_view device) { return device == "cuda" ? "cuda:0" : std::string(device); }

}  // namespace

void DeviceLocks::Lock(std::string_view device) {
  const std::string name = NameOf(device);
  const std::thread::id self = std::this_thread::get_id();
  const Clock::time_point start = Clock::now();
  std::unique_lock lock(mutex_);
  Device& of = devices_[name];
  if (!of.line.empty() && of.line.front() == self) {
    throw Error(KGRPO_ERROR_INTERNAL,
                "this thread holds the lock of device \"" + name + "\" already: locking it again would wait for ever");
  }
  of.line.push_back(self);
  // A user's stop does not end this wait: the thread that holds the device then releases it soon.
  freed_.wait(lock, [&] { return of.line.front() == self; });
  lock.unlock();
  try {
    LockMachine(name, of);
  } catch (...) {
    lock.lock();
    of.line.pop_front();  // so that the next thread has its turn
    lock.unlock();
    freed_.notify_all();
    throw;
  }
  const double waited = std::chrono::duration<double>(Clock::now() - start).count();
  seconds_waited += waited;
  all_seconds_waited += waited;
}

void DeviceLocks::Unlock(std::string_view device) {
  {
    const std::string name = NameOf(device);
    const std::lock_guard lock(mutex_);
    Device& of = devices_[name];
    if (of.line.empty() || of.line.front() != std::this_thread::get_id()) {
      throw Error(KGRPO_ERROR_INTERNAL, "device \"" + name + "\" is unlocked by a thread that did not lock it");
    }
    if (of.machine != nullptr) of.machine->Release();
    of.line.pop_front();
  }
  freed_.notify_all();
}

double DeviceLocks::SecondsWaited() { return seconds_waited; }

double DeviceLocks::AllSecondsWaited() { return all_seconds_waited; }

void DeviceLocks::OpenMachineLock(const std::string& name, Device& device) {
  if (std::exchange(device.opened, true) || !options_.identity) return;
  try {
    const std::string identity = options_.identity(name);
    if (!identity.empty()) device.machine = std::make_unique<MachineLock>(options_.directory, identity);
  } catch (const Error& error) {
    Say(std::string(error.what()) + "; another run on device " + name + " may disturb this one's timing");
  }
}

void DeviceLocks::LockMachine(const std::string& name, Device& device) {
  OpenMachineLock(name, device);
  if (device.machine == nullptr) return;
  while (!device.machine->TryTake()) {
    if (!std::exchange(device.said, true)) {
      Say("device " + name +
          " is in use by another process; the two take turns, so that neither disturbs the other's " + "timing (" +
          device.machine->path().string() + ")");
    }
    if (CancelRequested()) return device.machine->Release();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void DeviceLocks::Say(const std::string& text) const {
  if (options_.say) options_.say(text);
}

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

// The locks need no right to write, so users who share a folder need none on each other's files. O_CLOEXEC: a child
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

// Applies an operation of fcntl to the lock on the bytes from `begin`, as often as a signal interrupts it. Locks belong
// to the open file, so two objects in one process exclude each other too. Returns the lock that the system wrote back.
struct flock Apply(int descriptor, int operation, short type, off_t begin, off_t bytes,
                   const std::filesystem::path& path) {
  struct flock lock = {};
  int result;
  do {
    lock = {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = begin;
    lock.l_len = bytes;
    result = ::fcntl(descriptor, operation, &lock);
  } while (result != 0 && errno == EINTR);
  if (result != 0) Fail(path, std::strerror(errno));
  return lock;
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
  line_ = Open(path_);
}

MachineLock::~MachineLock() { ::close(line_); }

// True if another open file holds a place from `begin` on, or one of `bytes` places. Places are read locks, which
// everybody can hold on a file that is open for reading; a write lock would conflict with them.
bool MachineLock::OthersHold(off_t begin, off_t bytes) const {
  return Apply(line_, F_OFD_GETLK, F_WRLCK, begin, bytes, path_).l_type != F_UNLCK;
}

// Takes the place behind the last one that is held.
void MachineLock::TakePlace() {
  constexpr off_t kMostPlaces = off_t{1} << 40;
  while (::flock(line_, LOCK_EX) != 0) {  // for a moment: nobody else chooses a place now
    if (errno != EINTR) Fail(path_, std::strerror(errno));
  }
  off_t behind = 0;  // no place from here on is held
  for (off_t step = kMostPlaces; step > 0; step /= 2) {
    if (OthersHold(behind + step - 1, 0)) behind += step;
  }
  Apply(line_, F_OFD_SETLK, F_RDLCK, behind, 1, path_);
  ::flock(line_, LOCK_UN);
  place_ = behind;
}

bool MachineLock::TryTake() {
  if (place_ < 0) TakePlace();
  return place_ == 0 || !OthersHold(0, place_);
}

void MachineLock::Release() {
  if (place_ >= 0) Apply(line_, F_OFD_SETLK, F_UNLCK, place_, 1, path_);
  place_ = -1;
}

}  // namespace kgrpo
