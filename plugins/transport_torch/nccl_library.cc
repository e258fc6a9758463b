#include "transport_torch/nccl_library.h"

#include <dlfcn.h>
#include <kgrpo/sdk/error.h>

namespace kgrpo::transport {
namespace {

class Opened {
 public:
  explicit Opened(const std::string& name) : name_(name), handle_(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) {
      throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("several ranks on GPUs need NCCL: ") + dlerror() +
                                               "; it comes with KGRPO_FULL_TORCH=1 scripts/setup");
    }
  }

  template <typename Function>
  void Find(const char* symbol, Function* found) const {
    *found = reinterpret_cast<Function>(dlsym(handle_, symbol));
    if (*found == nullptr)
      throw Error(KGRPO_ERROR_UNAVAILABLE, name_ + " has no " + symbol + ": NCCL 2.13 or newer is needed");
  }

 private:
  std::string name_;
  void* handle_;
};

}  // namespace

NcclLibrary OpenNccl(const std::string& nccl_name, const std::string& cudart_name) {
  NcclLibrary library{};
  const Opened nccl(nccl_name);
  nccl.Find("ncclGetUniqueId", &library.get_unique_id);
  nccl.Find("ncclCommInitRank", &library.init_rank);
  nccl.Find("ncclCommAbort", &library.abort);
  nccl.Find("ncclAllReduce", &library.all_reduce);
  nccl.Find("ncclReduce", &library.reduce);
  nccl.Find("ncclReduceScatter", &library.reduce_scatter);
  nccl.Find("ncclAllGather", &library.all_gather);
  nccl.Find("ncclBroadcast", &library.broadcast);
  nccl.Find("ncclGroupStart", &library.group_start);
  nccl.Find("ncclGroupEnd", &library.group_end);
  nccl.Find("ncclGetLastError", &library.last_error);
  nccl.Find("ncclGetErrorString", &library.error_text);
  const Opened cudart(cudart_name);
  cudart.Find("cudaGetDevice", &library.cuda_get_device);
  cudart.Find("cudaSetDevice", &library.cuda_set_device);
  cudart.Find("cudaStreamCreateWithFlags", &library.cuda_stream_create);
  cudart.Find("cudaStreamSynchronize", &library.cuda_stream_wait);
  cudart.Find("cudaStreamDestroy", &library.cuda_stream_destroy);
  cudart.Find("cudaEventCreateWithFlags", &library.cuda_event_create);
  cudart.Find("cudaEventRecord", &library.cuda_event_record);
  cudart.Find("cudaStreamWaitEvent", &library.cuda_stream_wait_event);
  cudart.Find("cudaEventDestroy", &library.cuda_event_destroy);
  cudart.Find("cudaDeviceGetPCIBusId", &library.cuda_bus_id);
  cudart.Find("cudaGetErrorString", &library.cuda_error_text);
  return library;
}

}  // namespace kgrpo::transport
