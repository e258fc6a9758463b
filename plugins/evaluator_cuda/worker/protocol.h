// The messages between evaluator and worker, over a socket pair. The evaluator asks, the worker answers. The worker's
// answers are not trusted: results are read from memory that the evaluator owns, and times are taken by the evaluator's
// own clock.
#pragma once

#include <cstdint>

namespace kgrpo::evaluator_cuda {

constexpr int kSocket = 3;   // the worker's end
constexpr int kGates = 4;    // memory shared with the evaluator that holds an OpenPage,
constexpr int kReached = 5;  // and a ReachedPage
// The byte that a worker writes at the start of lent memory as soon as it has opened it.
constexpr int kOpenedByte = 0x5a;
constexpr uint64_t kOpenedBytes = 4096;

enum class Ask : uint32_t {
  kOpen = 1,  // payload: the 64 bytes of a cudaIpcMemHandle_t; opened memories are counted from 1. Answered by kOpened
  kLoad,      // payload: LoadHeader, a shared object that defines kgrpo_call, machine code. Answered by kLoaded
  kPlan,      // payload: PlanHeader, the values, the staged and the other copies. Answered by kPlanned
  kGo,        // no payload: runs the plan. Answered by kDone, and before that by kQueued where the plan has gates
};

enum class Say : uint32_t {
  kReady = 1,  // a CUDA context lives; payload: Ready, then the reason if there is no context
  kOpened,     // payload: the reason if it failed
  kLoaded,     // payload: the reason if it failed
  kPlanned,
  kQueued,     // everything is queued behind the gates
  kDone,       // payload: Done
  kForbidden,  // a refused system call; `detail` is its number. The worker is gone
};

struct Message {
  uint32_t kind;
  uint32_t detail;
  uint64_t payload_bytes;
};

struct Ready {
  uint64_t launch_picoseconds;  // that a launch takes the device
  int64_t gates_error;          // a cudaError_t: why the device cannot read the evaluator's OpenPage; 0: it can
};

struct LoadHeader {
  uint64_t object_bytes;   // what follows is a cubin, or nothing where the object holds its own
  uint64_t may_be_placed;  // for an object with its own code: it names kernels and variables only to functions that the
                           // worker replaces
};

// Two places on the default stream at which the device waits for the evaluator: before the staged copies, and after
// them, before the first call. Calls launched meanwhile run without a gap once the second one opens, so that a kernel
// of a few microseconds does not take as long as its launch. Each number is on a cache line of its own. A candidate
// lives in the worker's process, so the memory that opens a gate is sealed: that process and its device can only read
// it.
constexpr uint32_t kGateCount = 2;
struct alignas(128) GateLine {
  uint32_t sequence;
};
struct OpenPage {
  GateLine open[kGateCount];  // written by the evaluator: the gates of plans up to this one are open
};
struct ReachedPage {
  GateLine reached[kGateCount];  // written by the device, or by a candidate: no time is taken from it
  GateLine never;                // written by nobody: a gate that stays closed
};

// Calls of the launch function, one after the other, then one synchronisation of the device.
struct PlanHeader {
  uint32_t calls;
  uint32_t parameters;   // of each call
  uint32_t staged;       // copies on the default stream before the first call
  uint32_t copies;       // and right after the last call, before anything is waited for
  uint32_t copy_memory;  // in which memory both are
  uint32_t gates;        // 0: the plan has no gates; else its number at the gates, larger than those before it
};
// calls * parameters of these: a tensor's offset in an opened memory, or a scalar's bytes.
struct PlanValue {
  uint64_t memory;  // 0: a scalar
  uint64_t value;
};
struct PlanCopy {
  uint64_t target, source, bytes;
};

struct Done {
  int32_t launch_error;  // cudaGetLastError() after the calls
  int32_t wait_error;    // of the synchronisation
  double event_seconds;  // between events on the default stream around the calls, as the worker's process sees it
  uint64_t launches;     // kernels launched through the runtime
  uint64_t allocations;  // of device memory
  uint64_t refused;      // calls of the runtime that the evaluator does not allow
  // Of the launch with the most threads, if the plan had a single call. Untrusted, and shown to people only.
  uint64_t grid_blocks;
  uint32_t block_threads;
  uint32_t registers;             // of a thread
  uint32_t static_shared_bytes;   // of a block
  uint32_t dynamic_shared_bytes;  // of a block
  uint32_t resident_blocks;       // at once on a multiprocessor, by the runtime
  uint32_t reserved;
};

}  // namespace kgrpo::evaluator_cuda
