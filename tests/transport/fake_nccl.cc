// A stand-in for NCCL and CUDA's runtime: ranks are threads of one process, and memory of every "GPU" is the host's. It
// implements the functions that transport_torch calls as documented, and refuses forbidden calls. Loaded by
// transport_test.cc in place of the real libraries.
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace {

struct UniqueId {
  char bytes[128];
};

// Ranks of one communicator, who meet at each operation.
struct Team {
  std::mutex mutex;
  std::condition_variable changed;
  int size = 0, waiting = 0, turn = 0;
  std::vector<const char*> from;

  void Meet(int rank, const void* data) {
    std::unique_lock lock(mutex);
    from.resize(static_cast<size_t>(size));
    from[static_cast<size_t>(rank)] = static_cast<const char*>(data);
    const int now = turn;
    if (++waiting == size) {
      waiting = 0;
      ++turn;
      changed.notify_all();
    }
    changed.wait(lock, [&] { return turn != now; });
  }
};

struct Rank {
  std::shared_ptr<Team> team;
  int rank = 0, device = 0;
};

std::mutex teams_mutex;
std::map<std::string, std::weak_ptr<Team>> teams;
thread_local int device = 0;
thread_local bool grouped = false;
thread_local std::vector<std::function<void()>> group;

constexpr int kInvalidArgument = 4, kInvalidUsage = 5;
constexpr int kBadDevice = 101, kDevices = 8;
constexpr size_t kFailingCount = 1313;  // an operation on so many elements fails

size_t SizeOf(int type) {
  switch (type) {
    case 1: return 1;  // uint8
    case 9: return 2;  // bfloat16
    case 7: return 4;  // float32
    case 4:
    case 8: return 8;  // int64, float64
    default: return 0;
  }
}

template <typename Value>
void Fold(int operation, const std::vector<const char*>& from, size_t offset, size_t count, char* to) {
  std::vector<Value> sum(count), one(count);
  for (size_t rank = 0; rank < from.size(); ++rank) {
    std::memcpy(one.data(), from[rank] + offset, count * sizeof(Value));
    for (size_t i = 0; i < count; ++i) {
      if (rank == 0)
        sum[i] = one[i];
      else if (operation == 0)
        sum[i] += one[i];
      else if (operation == 2)
        sum[i] = std::max(sum[i], one[i]);
      else
        sum[i] = std::min(sum[i], one[i]);
    }
  }
  std::memcpy(to, sum.data(), count * sizeof(Value));
}

// Reads what every rank gave, into a copy, before anybody writes: operations may be in place.
int Do(void* communicator, const void* from, void* to, size_t count, int type, void* stream,
       const std::function<std::vector<char>(const Rank&)>& result) {
  const Rank* rank = static_cast<const Rank*>(communicator);
  if (rank == nullptr || stream == nullptr || SizeOf(type) == 0) return kInvalidArgument;
  if (device != rank->device || count == kFailingCount) return kInvalidUsage;
  const auto work = [=] {
    rank->team->Meet(rank->rank, from);
    const std::vector<char> found = result(*rank);
    rank->team->Meet(rank->rank, from);
    if (!found.empty()) std::memcpy(to, found.data(), found.size());
    rank->team->Meet(rank->rank, from);
  };
  if (grouped)
    group.emplace_back(work);
  else
    work();
  return 0;
}

std::vector<char> Folded(const Rank& rank, int type, int operation, size_t begin, size_t count) {
  std::vector<char> found(count * SizeOf(type));
  if (type == 7)
    Fold<float>(operation, rank.team->from, begin * 4, count, found.data());
  else if (type == 8)
    Fold<double>(operation, rank.team->from, begin * 8, count, found.data());
  return found;
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int ncclGetUniqueId(UniqueId* id) {
  static int made = 0;
  const std::lock_guard lock(teams_mutex);
  std::memset(id->bytes, 'x', sizeof(id->bytes));
  std::snprintf(id->bytes, sizeof(id->bytes), "%d", ++made);
  return 0;
}
EXPORTED int ncclCommInitRank(void** made, int size, UniqueId id, int rank) {
  auto one = std::make_unique<Rank>();
  {
    const std::lock_guard lock(teams_mutex);
    std::weak_ptr<Team>& team = teams[std::string(id.bytes, sizeof(id.bytes))];
    one->team = team.lock();
    if (!one->team) team = one->team = std::make_shared<Team>();
    one->team->size = size;
  }
  one->rank = rank;
  one->device = device;
  one->team->Meet(rank, nullptr);
  *made = one.release();
  return 0;
}
EXPORTED int ncclCommAbort(void* communicator) {
  delete static_cast<Rank*>(communicator);
  return 0;
}
EXPORTED int ncclAllReduce(const void* from, void* to, size_t count, int type, int operation, void* communicator,
                           void* stream) {
  return Do(communicator, from, to, count, type, stream,
            [=](const Rank& rank) { return Folded(rank, type, operation, 0, count); });
}
EXPORTED int ncclReduce(const void* from, void* to, size_t count, int type, int operation, int root, void* communicator,
                        void* stream) {
  return Do(communicator, from, to, count, type, stream, [=](const Rank& rank) {
    return rank.rank == root ? Folded(rank, type, operation, 0, count) : std::vector<char>();
  });
}
EXPORTED int ncclReduceScatter(const void* from, void* to, size_t count, int type, int operation, void* communicator,
                               void* stream) {
  return Do(communicator, from, to, count, type, stream, [=](const Rank& rank) {
    return Folded(rank, type, operation, static_cast<size_t>(rank.rank) * count, count);
  });
}
EXPORTED int ncclAllGather(const void* from, void* to, size_t count, int type, void* communicator, void* stream) {
  return Do(communicator, from, to, count, type, stream, [=](const Rank& rank) {
    std::vector<char> all;
    for (const char* one : rank.team->from) all.insert(all.end(), one, one + count * SizeOf(type));
    return all;
  });
}
EXPORTED int ncclBroadcast(const void* from, void* to, size_t count, int type, int root, void* communicator,
                           void* stream) {
  return Do(communicator, from, to, count, type, stream, [=](const Rank& rank) {
    const char* one = rank.team->from[static_cast<size_t>(root)];
    return std::vector<char>(one, one + count * SizeOf(type));
  });
}
EXPORTED int ncclGroupStart() {
  grouped = true;
  return 0;
}
EXPORTED int ncclGroupEnd() {
  grouped = false;
  for (const auto& work : group) work();
  group.clear();
  return 0;
}
EXPORTED const char* ncclGetLastError(void*) { return "as the test asked"; }
EXPORTED const char* ncclGetErrorString(int result) {
  return result == kInvalidUsage ? "invalid usage" : "invalid argument";
}
EXPORTED int cudaGetDevice(int* found) {
  *found = device;
  return 0;
}
EXPORTED int cudaSetDevice(int wanted) {
  if (wanted < 0 || wanted >= kDevices) return kBadDevice;
  device = wanted;
  return 0;
}
EXPORTED int cudaStreamCreateWithFlags(void** made, unsigned) {
  *made = new int(device);
  return 0;
}
EXPORTED int cudaStreamSynchronize(void*) { return 0; }
EXPORTED int cudaStreamDestroy(void* stream) {
  delete static_cast<int*>(stream);
  return 0;
}
// Work is done when it is queued, so a stream has nothing to wait for; an event that nobody recorded is a mistake.
EXPORTED int cudaEventCreateWithFlags(void** made, unsigned flags) {
  *made = new bool(false);
  return flags == 2 ? 0 : kBadDevice;
}
EXPORTED int cudaEventRecord(void* event, void*) {
  *static_cast<bool*>(event) = true;
  return 0;
}
EXPORTED int cudaStreamWaitEvent(void* stream, void* event, unsigned) {
  if (stream == nullptr || !std::exchange(*static_cast<bool*>(event), false)) return kBadDevice;
  return 0;
}
EXPORTED int cudaEventDestroy(void* event) {
  delete static_cast<bool*>(event);
  return 0;
}
EXPORTED int cudaDeviceGetPCIBusId(char* text, int size, int wanted) {
  if (wanted < 0 || wanted >= kDevices) return kBadDevice;
  std::snprintf(text, static_cast<size_t>(size), "0000:%02x:00.0", wanted);
  return 0;
}
EXPORTED const char* cudaGetErrorString(int) { return "invalid device ordinal"; }
