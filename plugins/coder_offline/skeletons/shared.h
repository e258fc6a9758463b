// Helpers shared by the skeletons of this folder.
#ifndef KGRPO_PLUGINS_CODER_OFFLINE_SKELETONS_SHARED_H_
#define KGRPO_PLUGINS_CODER_OFFLINE_SKELETONS_SHARED_H_

#include <string>

#include "coder_offline/skeleton.h"

namespace kgrpo::coder_offline {

constexpr int kGridStrideThreads = 132 * 1024;  // half of what the device holds at once

// The reason why a technique that works on a shared-memory tile is not applicable; empty if there is a tile.
inline std::string NeedsTile(const Program& program) {
  return program.schedule.Has("tile") ? "" : "there is no shared-memory tile yet";
}

// The first const pointer; null if there is none.
inline const Parameter* FirstInput(const Program& program) {
  for (const Parameter& parameter : program.parameters) {
    if (parameter.pointer && parameter.constant) return &parameter;
  }
  return nullptr;
}

}  // namespace kgrpo::coder_offline
#endif
