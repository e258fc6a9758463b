// One rank's connection to the others: collectives by Gloo for tensors on the CPU, by NCCL for those on a GPU, and the
// rendezvous's keys. plugin.cc offers it as kgrpo.transport/1.
#pragma once

#include <kgrpo/draft/collective.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "transport_torch/group.h"
#include "transport_torch/rendezvous.h"

namespace kgrpo::transport {

// Functions mirror kgrpo_collective_interface and kgrpo_transport_interface, and throw where those return errors.
class TorchTransport {
 public:
  // Returns once all ranks have connected.
  explicit TorchTransport(Options options);
  ~TorchTransport();
  TorchTransport(const TorchTransport&) = delete;
  TorchTransport& operator=(const TorchTransport&) = delete;

  const kgrpo_rank_info& info() const { return info_; }

  void AllReduce(const kgrpo_tensor& values, kgrpo_reduction reduction);
  void ReduceScatter(const kgrpo_tensor& values);
  void AllGather(const kgrpo_tensor& values);
  void Broadcast(const kgrpo_tensor& values, uint32_t root);
  void BeginReduceScatter(const kgrpo_tensor& values, size_t begin, size_t end, void* stream);
  void FinishReductions();

  void Put(const std::string& key, const std::string& value);
  std::optional<std::string> Get(const std::string& key);

 private:
  void MeetAll();
  Group& GroupOf(const kgrpo_tensor& values);

  Options options_;
  kgrpo_rank_info info_{};
  c10::intrusive_ptr<c10d::Store> store_;  // for the rendezvous: waits up to options.patience
  std::mutex words_mutex_;
  c10::intrusive_ptr<c10d::Store> words_;  // for put and get: its own connection, which gives up in seconds
  std::unique_ptr<Group> cpus_;
  std::unique_ptr<Group> gpus_;  // made for the first tensor on a GPU
};

}  // namespace kgrpo::transport
