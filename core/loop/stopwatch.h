// Seconds of the clock since it was made: what the loop's times are taken with.
#ifndef KGRPO_LOOP_STOPWATCH_H
#define KGRPO_LOOP_STOPWATCH_H

#include <chrono>

namespace kgrpo {

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace kgrpo
#endif
