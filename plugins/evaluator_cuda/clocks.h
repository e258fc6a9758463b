// The device's clock and whether it is throttled, by NVML. Used by the timer.
#pragma once

#include <string>

namespace kgrpo::evaluator_cuda {

// One thread at a time.
class Clocks {
 public:
  // Loads libnvidia-ml.so.1; where there is none, nothing is known.
  explicit Clocks(const std::string& bus_id);
  ~Clocks();
  Clocks(const Clocks&) = delete;
  Clocks& operator=(const Clocks&) = delete;

  struct Reading {
    bool known = false;
    double megahertz = 0;    // of the multiprocessors
    bool throttled = false;  // by heat, power or hardware: what was timed just now is not the device's best
  };
  Reading Read();

  bool known() const { return device_ != nullptr; }

 private:
  void* library_ = nullptr;
  void* device_ = nullptr;
  int (*clock_)(void*, unsigned, unsigned*) = nullptr;
  int (*reasons_)(void*, unsigned long long*) = nullptr;
  int (*shutdown_)() = nullptr;
};

}  // namespace kgrpo::evaluator_cuda
