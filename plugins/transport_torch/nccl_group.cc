// Collectives among GPUs, one a rank, by NCCL.
#include "transport_torch/group.h"

#include <kgrpo/sdk/collective.h>
#include <kgrpo/sdk/error.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "transport_torch/nccl_library.h"

namespace kgrpo::transport {
namespace {

int NcclTypeOf(const kgrpo_tensor& tensor) {
  const auto& type = tensor.dtype;
  if (type.code == KGRPO_DTYPE_FLOAT && type.bits == 32) return NcclLibrary::kFloat32;
  if (type.code == KGRPO_DTYPE_FLOAT && type.bits == 64) return NcclLibrary::kFloat64;
  if (type.code == KGRPO_DTYPE_BFLOAT && type.bits == 16) return NcclLibrary::kBfloat16;
  if (type.code == KGRPO_DTYPE_UINT && type.bits == 8) return NcclLibrary::kUint8;
  if (type.code == KGRPO_DTYPE_INT && type.bits == 64) return NcclLibrary::kInt64;
  throw Error(KGRPO_ERROR_UNSUPPORTED, CannotBeSent(tensor));
}

std::string Text(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

// Operations run on a stream of their own. Every call but BeginReduceScatter waits until the device has finished.
class NcclGroup : public Group {
 public:
  NcclGroup(const Options& options, c10d::Store& store, int device)
      : library_(OpenNccl(options.nccl, options.cudart)), options_(options), device_(device) {
    RequireGpusOfTheirOwn(store);
    const OnDevice here(*this);
    NcclLibrary::UniqueId id{};
    const std::string key = "nccl";
    if (options_.rank == 0) {
      CheckNccl("ncclGetUniqueId", library_.get_unique_id(&id));
      store.set(key, std::vector<uint8_t>(std::begin(id.bytes), std::end(id.bytes)));
    } else {
      const std::vector<uint8_t> given = store.get(key);  // waits for it
      if (given.size() != sizeof(id.bytes))
        throw Error(KGRPO_ERROR_UNAVAILABLE, "rank 0 has another version of NCCL: all ranks need the same");
      std::memcpy(id.bytes, given.data(), given.size());
    }
    CheckNccl("ncclCommInitRank",
              library_.init_rank(&communicator_, static_cast<int>(options_.size), id, static_cast<int>(options_.rank)));
    CheckCuda("cudaStreamCreate", library_.cuda_stream_create(&stream_, NcclLibrary::kNonBlocking));
    CheckCuda("cudaEventCreate", library_.cuda_event_create(&gradients_ready_, NcclLibrary::kDisableTiming));
  }

  ~NcclGroup() override {
    // No operation is in flight, and ncclCommAbort does not need the other ranks.
    if (gradients_ready_ != nullptr) library_.cuda_event_destroy(gradients_ready_);
    if (stream_ != nullptr) library_.cuda_stream_destroy(stream_);
    if (communicator_ != nullptr) library_.abort(communicator_);
  }

  void AllReduce(const kgrpo_tensor& values, kgrpo_reduction reduction) override {
    const int operation = reduction == KGRPO_REDUCTION_MIN   ? NcclLibrary::kMin
                          : reduction == KGRPO_REDUCTION_MAX ? NcclLibrary::kMax
                                                             : NcclLibrary::kSum;
    Run("all_reduce", values, [&] {
      return library_.all_reduce(DataOf(values), DataOf(values), CountOf(values), NcclTypeOf(values), operation,
                                 communicator_, stream_);
    });
  }

  void ReduceScatter(const kgrpo_tensor& values) override {
    Run("reduce_scatter", values, [&] { return StartReduceScatter(values, 0, CountOf(values)); });
  }

  void BeginReduceScatter(const kgrpo_tensor& values, size_t begin, size_t end, void* stream) override {
    RequireOwnDevice(values);
    if (begin == end) return;
    const OnDevice here(*this);
    CheckCuda("cudaEventRecord", library_.cuda_event_record(gradients_ready_, stream));
    CheckCuda("cudaStreamWaitEvent", library_.cuda_stream_wait_event(stream_, gradients_ready_, 0));
    CheckNccl("reduce_scatter", StartReduceScatter(values, begin, end));
  }

  void FinishReductions() override {
    const OnDevice here(*this);
    CheckCuda("reduce_scatter", library_.cuda_stream_wait(stream_));
  }

  void AllGather(const kgrpo_tensor& values) override {
    const size_t count = CountOf(values);
    Run("all_gather", values, [&] {
      if (count % options_.size == 0) {
        const char* const own = DataOf(values) + SliceBegin(values, options_.rank) * (values.dtype.bits / 8U);
        return library_.all_gather(own, DataOf(values), count / options_.size, NcclTypeOf(values), communicator_,
                                   stream_);
      }
      return EachSlice(values, 0, count, [&](char* slice, size_t elements, int rank) {
        return library_.broadcast(slice, slice, elements, NcclTypeOf(values), rank, communicator_, stream_);
      });
    });
  }

  void Broadcast(const kgrpo_tensor& values, uint32_t root) override {
    Run("broadcast", values, [&] {
      return library_.broadcast(DataOf(values), DataOf(values), CountOf(values), NcclTypeOf(values),
                                static_cast<int>(root), communicator_, stream_);
    });
  }

 private:
  // Makes the group's device current in this thread while it lives. The policy relies on the previous one, which is
  // restored.
  class OnDevice {
   public:
    explicit OnDevice(const NcclGroup& group) : group_(group) {
      group_.CheckCuda("cudaGetDevice", group_.library_.cuda_get_device(&before_));
      group_.CheckCuda("cudaSetDevice", group_.library_.cuda_set_device(group_.device_));
    }
    ~OnDevice() { group_.library_.cuda_set_device(before_); }
    OnDevice(const OnDevice&) = delete;
    OnDevice& operator=(const OnDevice&) = delete;

   private:
    const NcclGroup& group_;
    int before_ = 0;
  };

  // NCCL's own error for two ranks on one device is just "invalid usage", so this check comes first and names them.
  void RequireGpusOfTheirOwn(c10d::Store& store) const {
    char bus[64] = {}, host[HOST_NAME_MAX + 1] = {};
    CheckCuda("cudaDeviceGetPCIBusId", library_.cuda_bus_id(bus, sizeof(bus), device_));
    gethostname(host, HOST_NAME_MAX);
    const std::string own = std::string("GPU ") + bus + " of " + host;
    store.set("gpu/" + std::to_string(options_.rank), std::vector<uint8_t>(own.begin(), own.end()));
    std::map<std::string, uint32_t> ranks;
    for (uint32_t rank = 0; rank < options_.size; ++rank) {
      const std::string place = Text(store.get("gpu/" + std::to_string(rank)));
      const auto [other, alone] = ranks.emplace(place, rank);
      if (!alone) {
        throw Error(KGRPO_ERROR_INVALID, "ranks " + std::to_string(other->second) + " and " + std::to_string(rank) +
                                             " are both on " + place + ": start as many ranks as there are GPUs");
      }
    }
  }

  // Reduces each slice of a part to the slice's owner. This sends as much as a reduce_scatter of the part, and half as
  // much as an all_reduce.
  int StartReduceScatter(const kgrpo_tensor& values, size_t begin, size_t end) {
    const size_t count = CountOf(values);
    const int type = NcclTypeOf(values);
    if (begin == 0 && end == count && count % options_.size == 0) {
      char* const own = DataOf(values) + SliceBegin(values, options_.rank) * (values.dtype.bits / 8U);
      return library_.reduce_scatter(DataOf(values), own, count / options_.size, type, NcclLibrary::kSum, communicator_,
                                     stream_);
    }
    return EachSlice(values, begin, end, [&](char* slice, size_t elements, int rank) {
      return library_.reduce(slice, slice, elements, type, NcclLibrary::kSum, rank, communicator_, stream_);
    });
  }

  size_t SliceBegin(const kgrpo_tensor& values, uint32_t rank) const {
    return Collective::SliceBegin(CountOf(values), rank, options_.size);
  }

  // Calls `start` for the elements of each rank's slice that lie between `begin` and `end`, as one NCCL group. NCCL's
  // own reduce_scatter and all_gather need slices of equal size.
  int EachSlice(const kgrpo_tensor& values, size_t begin, size_t end,
                const std::function<int(char* slice, size_t count, int rank)>& start) const {
    int failure = library_.group_start();
    for (uint32_t rank = 0; rank < options_.size && failure == 0; ++rank) {
      const size_t first = std::max(begin, SliceBegin(values, rank)),
                   last = std::min(end, SliceBegin(values, rank + 1));
      if (first < last)
        failure = start(DataOf(values) + first * (values.dtype.bits / 8U), last - first, static_cast<int>(rank));
    }
    const int ended = library_.group_end();
    return failure != 0 ? failure : ended;
  }

  void RequireOwnDevice(const kgrpo_tensor& values) const {
    if (values.device.id != device_)
      throw Error(KGRPO_ERROR_INVALID,
                  "this tensor is on another GPU than the rank's earlier ones: a rank uses one GPU");
  }

  void Run(const char* what, const kgrpo_tensor& values, const std::function<int()>& start) {
    RequireOwnDevice(values);
    if (CountOf(values) == 0) return;
    const OnDevice here(*this);
    CheckNccl(what, start());
    CheckCuda(what, library_.cuda_stream_wait(stream_));
  }

  void CheckNccl(const char* what, int result) const {
    if (result == 0) return;
    const char* const more = library_.last_error(communicator_);
    throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("NCCL failed in ") + what + ": " + library_.error_text(result) +
                                             (more == nullptr || *more == '\0' ? "" : std::string(" (") + more + ")") +
                                             "; NCCL_DEBUG=WARN says more");
  }

  void CheckCuda(const char* what, int result) const {
    if (result == 0) return;
    throw Error(KGRPO_ERROR_UNAVAILABLE,
                std::string("CUDA failed in ") + what + ": " + library_.cuda_error_text(result));
  }

  const NcclLibrary library_;
  const Options options_;
  const int device_;
  NcclLibrary::Communicator communicator_ = nullptr;
  NcclLibrary::Stream stream_ = nullptr;
  NcclLibrary::Event gradients_ready_ = nullptr;  // recorded on the caller's stream
};

}  // namespace

std::unique_ptr<Group> MakeNcclGroup(const Options& options, c10d::Store& store, int device) {
  return std::make_unique<NcclGroup>(options, store, device);
}

}  // namespace kgrpo::transport
