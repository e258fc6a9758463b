// Collectives among GPUs, one a rank, by NCCL. Used by torch_transport.cc.
#pragma once

#include "transport_torch/group.h"
#include "transport_torch/nccl_library.h"
#include "transport_torch/rendezvous.h"

#include <functional>

namespace kgrpo::transport {

// Operations run on a stream of their own. Every call but BeginReduceScatter waits until the device has finished.
class NcclGroup : public Group {
 public:
  // Returns once all ranks have made their group, within options.patience. `device`: the GPU's number in this process.
  // Throws KGRPO_ERROR_INVALID, naming both ranks, if two ranks are on one GPU.
  NcclGroup(const Options& options, c10d::Store& store, int device);
  ~NcclGroup() override;
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  void AllReduce(const kgrpo_tensor& values, kgrpo_reduction reduction) override;
  void ReduceScatter(const kgrpo_tensor& values) override;
  void AllGather(const kgrpo_tensor& values) override;
  void Broadcast(const kgrpo_tensor& values, uint32_t root) override;
  void BeginReduceScatter(const kgrpo_tensor& values, size_t begin, size_t end, void* stream) override;
  void FinishReductions() override;

 private:
  class OnDevice;

  void RequireGpusOfTheirOwn(c10d::Store& store) const;
  void RequireOwnDevice(const kgrpo_tensor& values) const;
  void Run(const char* what, const kgrpo_tensor& values, const std::function<int()>& start);
  size_t SliceBegin(const kgrpo_tensor& values, uint32_t rank) const;
  int EachSlice(const kgrpo_tensor& values, size_t begin, size_t end,
                const std::function<int(char* slice, size_t count, int rank)>& start) const;
  int StartReduceScatter(const kgrpo_tensor& values, size_t begin, size_t end);
  void CheckNccl(const char* what, int result) const;
  void CheckCuda(const char* what, int result) const;

  const NcclLibrary library_;
  const Options options_;
  const int device_;
  NcclLibrary::Communicator communicator_ = nullptr;
  NcclLibrary::Stream stream_ = nullptr;
  NcclLibrary::Event gradients_ready_ = nullptr;  // recorded on the caller's stream
};

}  // namespace kgrpo::transport
