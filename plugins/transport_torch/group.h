// The collectives of kgrpo/draft/collective.h for tensors on one kind of device. Used by torch_transport.h.
#pragma once

#include <kgrpo/draft/collective.h>

#include <cstddef>
#include <memory>
#include <string>

#include "transport_torch/rendezvous.h"

namespace kgrpo::transport {

// Functions mirror kgrpo_collective_interface; they throw KGRPO_ERROR_UNAVAILABLE where another rank was lost.
class Group {
 public:
  virtual ~Group() = default;
  virtual void AllReduce(const kgrpo_tensor& values, kgrpo_reduction reduction) = 0;
  virtual void ReduceScatter(const kgrpo_tensor& values) = 0;
  virtual void AllGather(const kgrpo_tensor& values) = 0;
  virtual void Broadcast(const kgrpo_tensor& values, uint32_t root) = 0;
  virtual void BeginReduceScatter(const kgrpo_tensor& values, size_t begin, size_t end, void* stream) = 0;
  virtual void FinishReductions() = 0;
};

// gloo_group.cc. Returns once all ranks have connected, within options.patience.
std::unique_ptr<Group> MakeGlooGroup(const Options& options, const c10::intrusive_ptr<c10d::Store>& store);
// nccl_group.cc. Returns once all ranks have made their group, within options.patience. `device`: the GPU's number in
// this process. Throws KGRPO_ERROR_INVALID, naming both ranks, if two ranks are on one GPU.
std::unique_ptr<Group> MakeNcclGroup(const Options& options, c10d::Store& store, int device);

inline size_t CountOf(const kgrpo_tensor& tensor) {
  size_t count = 1;
  for (int i = 0; i < tensor.ndim; ++i) count *= static_cast<size_t>(tensor.shape[i]);
  return count;
}

inline char* DataOf(const kgrpo_tensor& tensor) { return static_cast<char*>(tensor.data) + tensor.byte_offset; }

// "a tensor of type 2 with 16 bits cannot be sent to other ranks"
inline std::string CannotBeSent(const kgrpo_tensor& tensor) {
  return "a tensor of type " + std::to_string(tensor.dtype.code) + " with " + std::to_string(tensor.dtype.bits) +
         " bits cannot be sent to other ranks";
}

}  // namespace kgrpo::transport
