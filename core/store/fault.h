// Named points at which a run may be killed: tests of resume use them to end the process inside a checkpoint or a
// commit. A run calls the function at each point it passes; without one, nothing happens.
#ifndef KGRPO_STORE_FAULT_H
#define KGRPO_STORE_FAULT_H

#include <functional>

namespace kgrpo {

using FaultPoints = std::function<void(const char* point)>;

inline void Pass(const FaultPoints& points, const char* point) {
  if (points) points(point);
}

}  // namespace kgrpo
#endif
