// Measures the loop's times.
#ifndef KGRPO_LOOP_STOPWATCH_H
#define KGRPO_LOOP_STOPWATCH_H

#include "plugin/parts.h"

#include <chrono>

namespace kgrpo {

// Wall-clock seconds since construction.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Splits the time since construction, on the calling thread, into work and waiting for a device.
class CallTime {
 public:
  explicit CallTime(const PipelineParts& parts) : parts_(parts), waited_before_(parts.seconds_waited()) {}
  double waited() const { return parts_.seconds_waited() - waited_before_; }
  double worked() const { return watch_.seconds() - waited(); }

 private:
  const PipelineParts& parts_;
  double waited_before_;
  Stopwatch watch_;
};

}  // namespace kgrpo
#endif
