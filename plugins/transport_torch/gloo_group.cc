// Collectives among CPUs, by Gloo.
#include "transport_torch/group.h"

#include <ATen/ATen.h>
#include <kgrpo/sdk/collective.h>
#include <kgrpo/sdk/error.h>

#include <chrono>
#include <exception>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>
#include <vector>

namespace kgrpo::transport {
namespace {

// A rank may wait hours for another rank's rollouts, which wait for a coder. A lost rank is detected by its closed
// connection or its silence (loop/ranks.h), not by this timeout.
constexpr auto kCollectivePatience = std::chrono::hours(24 * 7);

at::ScalarType TypeOf(const kgrpo_tensor& tensor) {
  const auto& type = tensor.dtype;
  if (type.code == KGRPO_DTYPE_FLOAT && type.bits == 32) return at::kFloat;
  if (type.code == KGRPO_DTYPE_FLOAT && type.bits == 64) return at::kDouble;
  if (type.code == KGRPO_DTYPE_BFLOAT && type.bits == 16) return at::kBFloat16;
  if (type.code == KGRPO_DTYPE_UINT && type.bits == 8) return at::kByte;
  if (type.code == KGRPO_DTYPE_INT && type.bits == 64) return at::kLong;
  throw Error(KGRPO_ERROR_UNSUPPORTED, CannotBeSent(tensor));
}

// Returns a one-dimensional view of the tensor's memory, which stays the caller's.
at::Tensor Flat(const kgrpo_tensor& tensor) {
  return at::from_blob(DataOf(tensor), {static_cast<int64_t>(CountOf(tensor))}, at::TensorOptions(TypeOf(tensor)));
}

// Calls `body`, which begins a collective or waits for one. Reports libtorch's exceptions as the loss of another rank.
template <typename Body>
auto Telling(const char* what, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("another rank was lost in ") + what + " (" + Reason(error) + ")");
  }
}

// Runs a collective and waits for it.
template <typename Start>
void Finish(const char* what, Start&& start) {
  Telling(what, [&] { std::forward<Start>(start)()->wait(); });
}

class GlooGroup : public Group {
 public:
  GlooGroup(const Options& options, const c10::intrusive_ptr<c10d::Store>& store) : size_(options.size) {
    auto gloo = c10d::ProcessGroupGloo::Options::create_default(
        std::chrono::milliseconds(static_cast<int64_t>(options.patience * 1000)));
    gloo->threads = 1;
    gloo->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(OwnAddress(options)));
    group_ = c10::make_intrusive<c10d::ProcessGroupGloo>(store, static_cast<int>(options.rank),
                                                         static_cast<int>(options.size), gloo);
    group_->setTimeout(kCollectivePatience);
  }

  void AllReduce(const kgrpo_tensor& values, kgrpo_reduction reduction) override {
    std::vector<at::Tensor> tensors = {Flat(values)};
    c10d::AllreduceOptions how;
    how.reduceOp = reduction == KGRPO_REDUCTION_MIN   ? c10d::ReduceOp::MIN
                   : reduction == KGRPO_REDUCTION_MAX ? c10d::ReduceOp::MAX
                                                      : c10d::ReduceOp::SUM;
    if (tensors[0].numel() > 0) Finish("all_reduce", [&] { return group_->allreduce(tensors, how); });
  }

  // Gloo has no reduce_scatter that is faster than its all_reduce.
  void ReduceScatter(const kgrpo_tensor& values) override { AllReduce(values, KGRPO_REDUCTION_SUM); }

  void AllGather(const kgrpo_tensor& values) override {
    const at::Tensor all = Flat(values);
    const auto count = static_cast<size_t>(all.numel());
    for (uint32_t rank = 0; rank < size_; ++rank) {
      const auto begin = static_cast<int64_t>(Collective::SliceBegin(count, rank, size_));
      const auto end = static_cast<int64_t>(Collective::SliceBegin(count, rank + 1, size_));
      if (begin == end) continue;
      std::vector<at::Tensor> slice = {all.slice(0, begin, end)};
      c10d::BroadcastOptions from;
      from.rootRank = rank;
      Finish("all_gather", [&] { return group_->broadcast(slice, from); });
    }
  }

  void Broadcast(const kgrpo_tensor& values, uint32_t root) override {
    std::vector<at::Tensor> tensors = {Flat(values)};
    c10d::BroadcastOptions from;
    from.rootRank = root;
    if (tensors[0].numel() > 0) Finish("broadcast", [&] { return group_->broadcast(tensors, from); });
  }

  // Gloo's single thread runs the reductions in the order in which they were begun, in the background.
  void BeginReduceScatter(const kgrpo_tensor& values, size_t begin, size_t end, void* /*stream*/) override {
    if (begin == end) return;
    std::vector<at::Tensor> part = {Flat(values).slice(0, static_cast<int64_t>(begin), static_cast<int64_t>(end))};
    Telling("reduce_scatter", [&] { begun_.push_back(group_->allreduce(part)); });
  }

  void FinishReductions() override {
    std::exception_ptr failure;  // the first; all are waited for, since they use the caller's memory
    for (const auto& work : std::exchange(begun_, {})) {
      try {
        Finish("reduce_scatter", [&] { return work; });
      } catch (const Error&) {
        if (!failure) failure = std::current_exception();
      }
    }
    if (failure) std::rethrow_exception(failure);
  }

 private:
  const uint32_t size_;
  c10::intrusive_ptr<c10d::Backend> group_;
  std::vector<c10::intrusive_ptr<c10d::Work>> begun_;  // reductions in flight, in the order of their begin
};

}  // namespace

std::unique_ptr<Group> MakeGlooGroup(const Options& options, const c10::intrusive_ptr<c10d::Store>& store) {
  return std::make_unique<GlooGroup>(options, store);
}

}  // namespace kgrpo::transport
