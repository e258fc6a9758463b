#include "transport_torch/torch_transport.h"

#include <ATen/ATen.h>
#include <c10/util/Logging.h>
#include <kgrpo/sdk/collective.h>
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>
#include <vector>

namespace kgrpo::transport {
namespace {

constexpr double kWordSeconds = 8;
// A rank may wait for another's rollouts, which may wait for a coder for hours; that a rank is gone is known from its
// closed connection, or from its silence (loop/ranks.h).
constexpr auto kCollectivePatience = std::chrono::hours(24 * 7);

at::ScalarType TypeOf(const kgrpo_tensor& tensor) {
  const auto& type = tensor.dtype;
  if (type.code == KGRPO_DTYPE_FLOAT && type.bits == 32) return at::kFloat;
  if (type.code == KGRPO_DTYPE_FLOAT && type.bits == 64) return at::kDouble;
  if (type.code == KGRPO_DTYPE_BFLOAT && type.bits == 16) return at::kBFloat16;
  if (type.code == KGRPO_DTYPE_UINT && type.bits == 8) return at::kByte;
  if (type.code == KGRPO_DTYPE_INT && type.bits == 64) return at::kLong;
  throw Error(KGRPO_ERROR_UNSUPPORTED, "a tensor of type " + std::to_string(type.code) + " with " +
                                           std::to_string(type.bits) + " bits cannot be sent to other ranks");
}

// The elements as one dimension, borrowed.
at::Tensor Flat(const kgrpo_tensor& tensor) {
  if (tensor.device.type != KGRPO_DEVICE_CPU) {
    throw Error(KGRPO_ERROR_UNSUPPORTED,
                "several ranks train on CPUs only, so far: set the policy's device to cpu, or start one rank");
  }
  int64_t count = 1;
  for (int i = 0; i < tensor.ndim; ++i) count *= tensor.shape[i];
  return at::from_blob(static_cast<char*>(tensor.data) + tensor.byte_offset, {count},
                       at::TensorOptions(TypeOf(tensor)));
}

// Runs a collective and waits for it.
template <typename Start>
void Finish(const char* what, Start&& start) {
  try {
    std::forward<Start>(start)()->wait();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("another rank was lost in ") + what + " (" + Reason(error) + ")");
  }
}

}  // namespace

TorchTransport::TorchTransport(Options options) : options_(std::move(options)) {
  // libtorch's own words on a lost connection are a stack trace; the host says which rank was lost.
  setenv("TORCH_CPP_LOG_LEVEL", "ERROR", /*overwrite=*/0);
  c10::initLogging();
  info_ = {sizeof(info_), options_.rank, options_.size, options_.local_rank, options_.local_size};
  store_ = Connect(options_, options_.rank == 0, options_.patience);
  words_ = Connect(options_, false, kWordSeconds);
  const std::chrono::milliseconds patience(static_cast<int64_t>(options_.patience * 1000));
  auto gloo = c10d::ProcessGroupGloo::Options::create_default(patience);
  gloo->threads = 1;
  gloo->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(OwnAddress(options_)));
  try {
    // Gloo's own wait for the others says nothing of who is missing, so the ranks are counted first.
    store_->set("here/" + std::to_string(options_.rank), "1");
    for (uint32_t rank = 0; rank < options_.size; ++rank) {
      try {
        store_->wait({"here/" + std::to_string(rank)}, patience);
      } catch (const std::exception&) {
        throw Error(KGRPO_ERROR_UNAVAILABLE, "rank " + std::to_string(rank) + " of " + std::to_string(options_.size) +
                                                 " did not come to " + PlaceText(options_) + " within " +
                                                 std::to_string(static_cast<int>(options_.patience)) + " s");
      }
    }
    group_ = c10::make_intrusive<c10d::ProcessGroupGloo>(store_, static_cast<int>(options_.rank),
                                                         static_cast<int>(options_.size), gloo);
    group_->setTimeout(kCollectivePatience);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(KGRPO_ERROR_UNAVAILABLE, "the ranks cannot be connected: " + Reason(error));
  }
}

TorchTransport::~TorchTransport() = default;

void TorchTransport::AllReduce(const kgrpo_tensor& values, kgrpo_reduction reduction) {
  std::vector<at::Tensor> tensors = {Flat(values)};
  c10d::AllreduceOptions how;
  how.reduceOp = reduction == KGRPO_REDUCTION_MIN   ? c10d::ReduceOp::MIN
                 : reduction == KGRPO_REDUCTION_MAX ? c10d::ReduceOp::MAX
                                                    : c10d::ReduceOp::SUM;
  if (tensors[0].numel() > 0) Finish("all_reduce", [&] { return group_->allreduce(tensors, how); });
}

// Gloo has no reduce_scatter of its own that is faster.
void TorchTransport::ReduceScatter(const kgrpo_tensor& values) {
  AllReduce(values, KGRPO_REDUCTION_SUM);
}

void TorchTransport::AllGather(const kgrpo_tensor& values) {
  const at::Tensor all = Flat(values);
  const auto count = static_cast<size_t>(all.numel());
  for (uint32_t rank = 0; rank < options_.size; ++rank) {
    const auto begin = static_cast<int64_t>(Collective::SliceBegin(count, rank, options_.size));
    const auto end = static_cast<int64_t>(Collective::SliceBegin(count, rank + 1, options_.size));
    if (begin == end) continue;
    std::vector<at::Tensor> slice = {all.slice(0, begin, end)};
    c10d::BroadcastOptions from;
    from.rootRank = rank;
    Finish("all_gather", [&] { return group_->broadcast(slice, from); });
  }
}

void TorchTransport::Broadcast(const kgrpo_tensor& values, uint32_t root) {
  std::vector<at::Tensor> tensors = {Flat(values)};
  c10d::BroadcastOptions from;
  from.rootRank = root;
  if (tensors[0].numel() > 0) Finish("broadcast", [&] { return group_->broadcast(tensors, from); });
}

void TorchTransport::Put(const std::string& key, const std::string& value) {
  const std::lock_guard lock(words_mutex_);
  try {
    words_->set("word/" + key, value);
  } catch (const std::exception& error) {
    throw Error(KGRPO_ERROR_UNAVAILABLE, PlaceText(options_) + " is gone (" + Reason(error) + ")");
  }
}

std::optional<std::string> TorchTransport::Get(const std::string& key) {
  const std::lock_guard lock(words_mutex_);
  try {
    if (!words_->check({"word/" + key})) return std::nullopt;
    const std::vector<uint8_t> value = words_->get("word/" + key);
    return std::string(value.begin(), value.end());
  } catch (const std::exception& error) {
    throw Error(KGRPO_ERROR_UNAVAILABLE, PlaceText(options_) + " is gone (" + Reason(error) + ")");
  }
}

}  // namespace kgrpo::transport
