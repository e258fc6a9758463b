// Programmatic dependent launches: a kernel may begin while earlier ones of its stream still run, and its threads must
// not touch what those access before griddepcontrol.wait (cudaGridDependencySynchronize). Launches run one after the
// other here; what each accessed in global memory is kept, and a checked launch compares with it every access that no
// wait precedes. So a race is found whichever part of the earlier launch would still run on a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "simt/state/launch.h"
#include "simt/state/race_shadow.h"

namespace kgrpo::simt {

struct Access;
struct Grid;
struct Instruction;
struct Kernel;
struct Program;
struct Warp;
enum class AccessKind : uint8_t;

// The accesses of a checked launch that let the next one begin (griddepcontrol.launch_dependents). Valid as long as its
// module.
struct EarlierLaunch {
  const Program* program = nullptr;
  const Kernel* kernel = nullptr;
  LaunchConfig config;
  std::vector<AccessEvent> events;
  std::map<DeviceAddress, RaceShadow> shadows;  // by address of the allocation
};

// Takes the accesses out of a launch that has ended.
std::shared_ptr<EarlierLaunch> TakeAccesses(Grid& grid);

// The launches of a stream that may still run when the next one begins. Whoever runs the launches calls Begin before
// and End after each.
class LaunchesInFlight {
 public:
  // `overlaps`: the launch has the attribute programmaticStreamSerialization, and nothing waited since the one before.
  void Begin(bool overlaps, LaunchConfig* config);
  void End(LaunchResult* result);
  void Clear() { launches_.clear(); }

 private:
  static constexpr size_t kMost = 16;  // what they accessed takes memory; the oldest are forgotten
  std::vector<std::shared_ptr<EarlierLaunch>> launches_;
};

// Reports the first lane of `mask` that touches what a launch that may still run writes, or writes what it reads, with
// no wait before. Called for every access to global memory while LaunchConfig::in_flight is set.
void CheckEarlierLaunches(Warp& warp, const Instruction& in, uint32_t mask, AccessKind kind, const Access& access);

}  // namespace kgrpo::simt
