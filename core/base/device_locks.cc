#include "base/device_locks.h"

#include <kgrpo/sdk/error.h>

#include <atomic>
#include <chrono>
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

}  // namespace kgrpo
