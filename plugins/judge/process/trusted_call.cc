#include "judge/process/trusted_call.h"

#include <kgrpo/sdk/error.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "judge/sandbox/sandbox.h"  // FindHelperDirectory
#include "process/pool.h"
#include "process/subprocess.h"

namespace kgrpo::evaluator {
namespace {

using process::Descriptor, process::Helper, process::Subprocess;

constexpr double kWall = 5;                      // of processor time, on a busy machine
constexpr double kEndSeconds = 5;                // for a worker that gave no answer to be gone
constexpr size_t kKeptBytes = size_t{32} << 20;  // of memory between two calls

// A running kgrpo_trusted_worker and the memory that it shares with this process. One thread at a time.
class Worker {
 public:
  Worker()
      : memory_(memfd_create("kgrpo trusted calls", MFD_CLOEXEC)),
        helper_([this](int socket) { return Spec(socket, memory_.get()); }) {}
  ~Worker() { Unmap(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  bool HasEnded() { return helper_.process().Wait(0).has_value(); }

  // Null once the worker has ended: it must not be used again.
  std::optional<std::string> Load(const std::string& library) {
    const auto answer = helper_.Ask({"load", library}, kWall * kTrustedLoadSeconds);
    return answer && answer->size() == 1 ? std::optional((*answer)[0]) : std::nullopt;
  }

  // `alive`: false if the worker must not be used again.
  CallEnd Call(const std::string& library, const TrustedCall& call, bool* alive) {
    const std::vector<TrustedPlace> places = Place(call);
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[i].data != 0) std::memcpy(mapped_ + places[i].data, call.tensors[i].data, call.tensors[i].bytes);
    }
    std::memset(mapped_, 0, sizeof(uint64_t));
    const TrustedLimits limits = {bytes_, call.processor_seconds};
    const auto answer = helper_.Ask(
        {"call", library, call.function, Bytes(places.data(), places.size()),
         Bytes(call.reals.data(), call.reals.size()), Bytes(call.wholes.data(), call.wholes.size()), Bytes(&limits, 1)},
        kWall * call.processor_seconds);
    *alive = answer && answer->size() == 2;
    if (!*alive) return {WhyItEnded(call), ""};
    CallEnd end = {(*answer)[0], (*answer)[1]};
    for (size_t i = 0; end.failure.empty() && i < places.size(); ++i) {
      if (call.tensors[i].written) std::memcpy(call.tensors[i].data, mapped_ + places[i].data, call.tensors[i].bytes);
    }
    if (bytes_ > kKeptBytes) {
      Unmap();
      if (ftruncate(memory_.get(), 0) != 0) *alive = false;
    }
    return end;
  }

 private:
  static Subprocess::Spec Spec(int socket, int memory) {
    Subprocess::Spec spec;
    spec.argv = {FindHelperDirectory() + "/kgrpo_trusted_worker"};
    spec.descriptors = {{socket, Helper::kSocket}, {memory, kTrustedMemory}};
    spec.quiet = true;         // this process's output is for results
    spec.own_session = false;  // it ends with this process's group
    return spec;
  }

  template <typename T>
  static std::string Bytes(const T* values, size_t count) {
    return {reinterpret_cast<const char*>(values), count * sizeof(T)};
  }

  // Where each tensor lies, with memory for all of them.
  std::vector<TrustedPlace> Place(const TrustedCall& call) {
    std::vector<TrustedPlace> places;
    size_t at = kTrustedPage;
    for (const TrustedCall::Tensor& tensor : call.tensors) {
      TrustedPlace place = {};
      if (tensor.data != nullptr) {
        const size_t inner = (tensor.bytes + kTrustedPage - 1) / kTrustedPage * kTrustedPage;
        place = {at, at + kTrustedPage + (call.at_end ? inner - tensor.bytes : 0), at + inner + 2 * kTrustedPage};
        at = place.end;
      }
      places.push_back(place);
    }
    if (at <= bytes_) return places;
    Unmap();
    void* mapped = ftruncate(memory_.get(), static_cast<off_t>(at)) == 0
                       ? mmap(nullptr, at, PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0)
                       : MAP_FAILED;
    if (mapped == MAP_FAILED)
      throw Error(KGRPO_ERROR_UNAVAILABLE, "no memory for " + std::to_string(at) + " bytes of tensors");
    mapped_ = static_cast<char*>(mapped);
    bytes_ = at;
    return places;
  }

  void Unmap() {
    if (mapped_ != nullptr) munmap(mapped_, bytes_);
    mapped_ = nullptr;
    bytes_ = 0;
  }

  std::string WhyItEnded(const TrustedCall& call) {
    uint64_t tensor = 0;
    std::memcpy(&tensor, mapped_, sizeof tensor);
    const std::optional<Subprocess::Result> result = helper_.process().Wait(kEndSeconds);
    if (!result || result->signal == SIGXCPU) return "did not finish";
    if (tensor > 0 && tensor <= call.tensors.size())
      return "accesses " + call.tensors[tensor - 1].name + " out of its bounds";
    if (result->signal != 0) return std::string("crashed (") + strsignal(result->signal) + ")";
    return "called exit";
  }

  const Descriptor memory_;
  Helper helper_;
  char* mapped_ = nullptr;
  size_t bytes_ = 0;
};

process::ProcessPool<Worker>& Pool() {
  static process::ProcessPool<Worker> pool(std::max(1u, std::thread::hardware_concurrency()),
                                           [] { return std::make_unique<Worker>(); });
  return pool;
}

// The system may have ended one that waited.
std::unique_ptr<Worker> TakeWorker() {
  std::unique_ptr<Worker> worker = Pool().Take();
  while (worker->HasEnded()) worker = Pool().Take();
  return worker;
}

}  // namespace

CallEnd CallTrusted(const std::string& library, const TrustedCall& call) {
  std::unique_ptr<Worker> worker = TakeWorker();
  bool alive = false;
  CallEnd end = worker->Call(library, call, &alive);
  if (end.failure.starts_with(kCannotBeCalled)) throw Error(KGRPO_ERROR_UNAVAILABLE, library + " " + end.failure);
  if (alive && !call.last) Pool().Add(std::move(worker));
  return end;
}

std::string LoadTrusted(const std::string& library) {
  std::unique_ptr<Worker> worker = TakeWorker();
  const std::optional<std::string> why = worker->Load(library);
  if (!why) return "its initialisation ends the process, or takes a minute";
  Pool().Add(std::move(worker));
  return *why;
}

}  // namespace kgrpo::evaluator
