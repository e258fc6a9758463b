// Functions of NCCL and of CUDA's runtime, loaded when needed: a machine without a GPU has neither. Used by
// nccl_group.cc.
#pragma once

#include <cstddef>
#include <string>

namespace kgrpo::transport {

// The declarations are NCCL's (nccl.h, 2.13 and newer), whose header neither Debian nor the libtorch wheel has.
struct NcclLibrary {
  struct UniqueId {
    char bytes[128];
  };
  using Communicator = void*;
  using Stream = void*;
  using Event = void*;

  int (*get_unique_id)(UniqueId* id);
  int (*init_rank)(Communicator* made, int size, UniqueId id, int rank);
  int (*abort)(Communicator communicator);
  int (*all_reduce)(const void* from, void* to, size_t count, int type, int operation, Communicator, Stream);
  int (*reduce)(const void* from, void* to, size_t count, int type, int operation, int root, Communicator, Stream);
  int (*reduce_scatter)(const void* from, void* to, size_t count_to, int type, int operation, Communicator, Stream);
  int (*all_gather)(const void* from, void* to, size_t count_from, int type, Communicator, Stream);
  int (*broadcast)(const void* from, void* to, size_t count, int type, int root, Communicator, Stream);
  int (*group_start)();
  int (*group_end)();
  const char* (*last_error)(Communicator communicator);  // null: this thread's last error
  const char* (*error_text)(int result);

  int (*cuda_get_device)(int* device);
  int (*cuda_set_device)(int device);
  int (*cuda_stream_create)(Stream* made, unsigned flags);
  int (*cuda_stream_wait)(Stream stream);
  int (*cuda_stream_destroy)(Stream stream);
  int (*cuda_event_create)(Event* made, unsigned flags);
  int (*cuda_event_record)(Event event, Stream stream);
  int (*cuda_stream_wait_event)(Stream stream, Event event, unsigned flags);
  int (*cuda_event_destroy)(Event event);
  int (*cuda_bus_id)(char* text, int size, int device);
  const char* (*cuda_error_text)(int result);

  static constexpr int kUint8 = 1, kInt64 = 4, kFloat32 = 7, kFloat64 = 8, kBfloat16 = 9;
  static constexpr int kSum = 0, kMax = 2, kMin = 3;
  static constexpr unsigned kNonBlocking = 1, kDisableTiming = 2;  // of a stream, of an event
};

// `nccl`, `cudart`: names or paths. A library of that name that the process has loaded already is used; the policy
// loads them with libtorch. Both stay loaded. Throws KGRPO_ERROR_UNAVAILABLE.
NcclLibrary OpenNccl(const std::string& nccl, const std::string& cudart);

}  // namespace kgrpo::transport
