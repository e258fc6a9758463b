#include "transport_torch/torch_transport.h"

#include <c10/util/Logging.h>
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>
#include <vector>

namespace kgrpo::transport {
namespace {

constexpr double kWordSeconds = 8;

// Replaces libtorch's exceptions in `connect`: their messages include a stack trace.
template <typename Connect>
auto Connecting(Connect&& connect) {
  try {
    return std::forward<Connect>(connect)();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(KGRPO_ERROR_UNAVAILABLE, "the ranks cannot be connected: " + Reason(error));
  }
}

// While it lives, threads that this thread starts block SIGPIPE. Gloo and the store's server do not prevent the signal
// when they write to a lost rank, and it would end the process before the loss is reported.
class SigpipeBlocked {
 public:
  SigpipeBlocked() {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before_);
  }
  ~SigpipeBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SigpipeBlocked(const SigpipeBlocked&) = delete;
  SigpipeBlocked& operator=(const SigpipeBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

TorchTransport::TorchTransport(Options options) : options_(std::move(options)) {
  const SigpipeBlocked in_its_threads;
  // libtorch logs a stack trace for a lost connection; the host reports which rank was lost.
  setenv("TORCH_CPP_LOG_LEVEL", "FATAL", /*overwrite=*/0);
  c10::initLogging();
  info_ = {sizeof(info_), options_.rank, options_.size, options_.local_rank, options_.local_size};
  store_ = Connect(options_, options_.rank == 0, options_.patience);
  words_ = Connect(options_, false, kWordSeconds);
  cpus_ = Connecting([&] {
    MeetAll();
    return MakeGlooGroup(options_, store_);
  });
}

// Gloo's own wait does not report which rank is missing, so this waits for each rank first.
void TorchTransport::MeetAll() {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end =
      Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(options_.patience * 1000));
  store_->set("here/" + std::to_string(options_.rank), "1");
  for (uint32_t rank = 0; rank < options_.size; ++rank) {
    try {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
      store_->wait({"here/" + std::to_string(rank)}, std::max(left, std::chrono::milliseconds(1)));
    } catch (const std::exception&) {
      throw Error(KGRPO_ERROR_UNAVAILABLE, "rank " + std::to_string(rank) + " of " + std::to_string(options_.size) +
                                               " did not come to " + PlaceText(options_) + " within " +
                                               std::to_string(static_cast<int>(options_.patience)) + " s");
    }
  }
}

TorchTransport::~TorchTransport() = default;

Group& TorchTransport::GroupOf(const kgrpo_tensor& values) {
  if (values.device.type == KGRPO_DEVICE_CPU) return *cpus_;
  if (values.device.type != KGRPO_DEVICE_CUDA)
    throw Error(KGRPO_ERROR_UNSUPPORTED, "cannot exchange a tensor on device type " +
                                             std::to_string(values.device.type) +
                                             " among ranks: only CPU and CUDA tensors");
  if (!gpus_) gpus_ = Connecting([&] { return MakeNcclGroup(options_, *store_, values.device.id); });
  return *gpus_;
}

void TorchTransport::AllReduce(const kgrpo_tensor& values, kgrpo_reduction reduction) {
  GroupOf(values).AllReduce(values, reduction);
}

void TorchTransport::ReduceScatter(const kgrpo_tensor& values) { GroupOf(values).ReduceScatter(values); }

void TorchTransport::AllGather(const kgrpo_tensor& values) { GroupOf(values).AllGather(values); }

void TorchTransport::Broadcast(const kgrpo_tensor& values, uint32_t root) { GroupOf(values).Broadcast(values, root); }

void TorchTransport::BeginReduceScatter(const kgrpo_tensor& values, size_t begin, size_t end, void* stream) {
  GroupOf(values).BeginReduceScatter(values, begin, end, stream);
}

void TorchTransport::FinishReductions() {
  try {
    cpus_->FinishReductions();
  } catch (...) {
    if (gpus_) gpus_->FinishReductions();  // these read the caller's memory until they are done
    throw;
  }
  if (gpus_) gpus_->FinishReductions();
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
