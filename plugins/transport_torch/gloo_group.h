// Collectives among CPUs, by Gloo. Used by torch_transport.cc.
#pragma once

#include "transport_torch/group.h"
#include "transport_torch/rendezvous.h"

#include <c10/util/intrusive_ptr.h>

#include <vector>

namespace c10d {
class Backend;
class Work;
}  // namespace c10d

namespace kgrpo::transport {

class GlooGroup : public Group {
 public:
  // Returns once all ranks have connected, within options.patience.
  GlooGroup(const Options& options, const c10::intrusive_ptr<c10d::Store>& store);
  ~GlooGroup() override;

  void AllReduce(const kgrpo_tensor& values, kgrpo_reduction reduction) override;
  void ReduceScatter(const kgrpo_tensor& values) override;
  void AllGather(const kgrpo_tensor& values) override;
  void Broadcast(const kgrpo_tensor& values, uint32_t root) override;
  void BeginReduceScatter(const kgrpo_tensor& values, size_t begin, size_t end, void* stream) override;
  void FinishReductions() override;

 private:
  const uint32_t size_;
  c10::intrusive_ptr<c10d::Backend> group_;
  std::vector<c10::intrusive_ptr<c10d::Work>> begun_;  // reductions in flight, in the order of their begin
};

}  // namespace kgrpo::transport
