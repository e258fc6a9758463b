// The time of day, for records and logs.
#ifndef KGRPO_BASE_WALL_CLOCK_H
#define KGRPO_BASE_WALL_CLOCK_H

#include <chrono>

namespace kgrpo {

inline double SecondsSince1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace kgrpo
#endif
