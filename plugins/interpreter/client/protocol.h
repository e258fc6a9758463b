// The messages between the evaluator and the worker that runs a candidate's host code. The worker sends requests and
// the evaluator replies. Commands travel in the replies to kReady, kLoaded and kReturned; every CUDA call that touches
// the device is a request. Shared by client/ (in the worker) and device_session.cc (in the evaluator), both built
// together, so there is no versioning. The evaluator treats everything it reads here as hostile.
#pragma once

#include <cstdint>

namespace kgrpo::interpreter {

// The descriptor that the worker inherits.
inline constexpr int kSocket = 3;

// No message carries more than this; the client splits longer copies.
inline constexpr uint64_t kLargestPayload = uint64_t{4} << 20;

enum class Operation : uint32_t {
  kReady = 1,     // the worker waits for a candidate. Answer: kLoad
  kLoaded,        // a = 0, or 1 and the loader's words as payload. Answer: kCall
  kReturned,      // the launch function returned. Answer: kCall
  kForbidden,     // a: number of a system call that the filter refused; the worker ends
  kAllocate,      // a: bytes, b: 1 for an array. Answer: value = address, 0 when there is no memory
  kFree,          // a: address
  kWrite,         // a: device address, payload: bytes
  kRead,          // a: device address, b: bytes. Answer: payload
  kCopy,          // a: target, b: source, c: bytes
  kMemset,        // a: target, b: byte value, c: bytes
  kKernel,        // payload: name. Answer: value = index, payload = KernelReply and its parameters
  kGlobal,        // payload: name. Answer: value = address, payload = uint64_t bytes
  kSharedLimit,   // a: kernel index, b: bytes of dynamic shared memory it may now use
  kLaunch,        // payload: LaunchRequest and the parameter block
  kRefused,       // payload: what the host code asked for and this evaluator does not offer; the worker ends
  kOccupancy,     // a: kernel index, b: threads, c: dynamic shared bytes. Answer: value = blocks a multiprocessor
  kAddObject,     // payload: simt::ImageObject. Answer: value = its handle
  kRemoveObject,  // a: handle
  kWait,          // the host waits for the device; a: 1 if work or an event was submitted since the last wait
};

struct Request {
  uint32_t operation;
  // The lowest bit: 1 for a further row of the same copy (kWrite, kRead, kCopy). Above it the host's time since the
  // last request, in units of 10 ns, by the prices of CUDA's calls and of what the host code executed.
  uint32_t continues;
  uint64_t a, b, c;
  uint64_t payload_bytes;
  uint64_t unexplained = 0;  // nanoseconds of the host code's processor time that these prices do not explain
};

struct Reply {
  int32_t error;  // a cudaError_t
  uint32_t reserved;
  uint64_t value;  // a Command for kReady, kLoaded and kReturned
  uint64_t payload_bytes;
};

enum class Command : uint64_t {
  kLoad = 1,  // payload: the shared object
  kCall,      // payload: CallArgument[] for the launch function
};

// One argument of the launch function: its bytes in the signature's type (pointers are device addresses).
struct CallArgument {
  uint64_t bytes;
};

struct KernelReply {
  uint32_t parameter_bytes;
  uint32_t parameters;  // that many KernelParameterReply follow
  uint32_t static_shared_bytes;
  uint32_t local_bytes;
  uint32_t registers;
  uint32_t max_threads;
};

struct KernelParameterReply {
  uint32_t offset, size;
};

struct LaunchRequest {
  uint32_t kernel;
  uint32_t cooperative;
  uint32_t grid[3];
  uint32_t block[3];
  uint64_t dynamic_shared_bytes;
  uint64_t overlaps;  // 1: it may begin before the launch before it has ended (programmatic dependent launch)
};

}  // namespace kgrpo::interpreter
