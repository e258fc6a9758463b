#include "evaluator_cuda/clocks.h"

#include <dlfcn.h>

namespace kgrpo::evaluator_cuda {
namespace {

// From NVML's documentation (nvmlClocksEventReasons): what slows a device that has work to do.
constexpr unsigned long long kSwPowerCap = 0x4, kHwSlowdown = 0x8, kSwThermal = 0x20, kHwThermal = 0x40,
                             kHwPowerBrake = 0x80;
constexpr unsigned kClockSm = 1;

template <typename Function>
bool FindFunction(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

}  // namespace

Clocks::Clocks(const std::string& bus_id) : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
  if (library_ == nullptr) return;
  int (*init)() = nullptr;
  int (*by_bus_id)(const char*, void**) = nullptr;
  const bool found = FindFunction(library_, "nvmlInit_v2", &init) &&
                     FindFunction(library_, "nvmlDeviceGetHandleByPciBusId_v2", &by_bus_id) &&
                     FindFunction(library_, "nvmlDeviceGetClockInfo", &clock_) &&
                     FindFunction(library_, "nvmlShutdown", &shutdown_) &&
                     (FindFunction(library_, "nvmlDeviceGetCurrentClocksEventReasons", &reasons_) ||
                      FindFunction(library_, "nvmlDeviceGetCurrentClocksThrottleReasons", &reasons_));
  if (!found || init() != 0) {
    shutdown_ = nullptr;
    return;
  }
  if (by_bus_id(bus_id.c_str(), &device_) != 0) device_ = nullptr;
}

Clocks::~Clocks() {
  if (shutdown_ != nullptr) shutdown_();
  if (library_ != nullptr) dlclose(library_);
}

Clocks::Reading Clocks::Read() {
  Reading reading;
  unsigned megahertz = 0;
  unsigned long long reasons = 0;
  if (device_ == nullptr || clock_(device_, kClockSm, &megahertz) != 0 || reasons_(device_, &reasons) != 0)
    return reading;
  reading.known = true;
  reading.megahertz = megahertz;
  reading.throttled = (reasons & (kSwPowerCap | kHwSlowdown | kSwThermal | kHwThermal | kHwPowerBrake)) != 0;
  return reading;
}

}  // namespace kgrpo::evaluator_cuda
