// kgrpo_cuda_worker: the process that runs one candidate on the GPU, inside the sandbox. It makes a CUDA context ahead
// of need, opens the memory that the evaluator lends it, loads the candidate behind a system call filter, and calls its
// launch function as often as it is told. It holds no secret: inputs and outputs lie in memory that the evaluator owns,
// and the evaluator itself compares the outputs and takes the time.
//
// Started by worker.cc as `kgrpo_cuda_worker LIBCUDART SCRATCH [nofilter]`, with its socket as descriptor 3 and the
// gates' memory as descriptors 4 and 5.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "evaluator_cuda/worker/fast_kernels.h"
#include "evaluator_cuda/worker/own_kernels.h"
#include "evaluator_cuda/worker/placement.h"
#include "evaluator_cuda/worker/protocol.h"
#include "evaluator_cuda/worker/runtime.h"
#include "judge/sandbox/seccomp_filter.h"

namespace {

using namespace kgrpo::evaluator_cuda;

constexpr uint64_t kPatienceNanoseconds = 2000000000;  // at a gate; then the evaluator is gone or has given up
constexpr int64_t kSpinNanoseconds = 20000000;         // the evaluator draws inputs meanwhile

bool ReadAll(void* data, size_t bytes) {
  auto* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t count = read(kSocket, at, bytes);
    if (count <= 0) return false;
    at += count;
    bytes -= static_cast<size_t>(count);
  }
  return true;
}

// Polls for the evaluator's next message for a while instead of sleeping: the time to wake up depends on the processor
// core that the worker runs on.
void SpinForWord() {
  timespec begin = {}, now = {};
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do {
    struct pollfd wait = {kSocket, POLLIN, 0};
    if (poll(&wait, 1, 0) != 0) return;
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while ((now.tv_sec - begin.tv_sec) * 1000000000 + (now.tv_nsec - begin.tv_nsec) < kSpinNanoseconds);
}

void WriteAll(const void* data, size_t bytes) {
  const auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t count = write(kSocket, at, bytes);
    if (count <= 0) _exit(122);
    at += count;
    bytes -= static_cast<size_t>(count);
  }
}

void Tell(Say kind, const void* payload, size_t bytes) {
  const Message message = {static_cast<uint32_t>(kind), 0, bytes};
  WriteAll(&message, sizeof message);
  if (bytes > 0) WriteAll(payload, bytes);
}

void Tell(Say kind, const std::string& text) { Tell(kind, text.data(), text.size()); }

void TellReady(const Ready& ready, const std::string& failure) {
  Tell(Say::kReady, std::string(reinterpret_cast<const char*>(&ready), sizeof ready) + failure);
}

// A refused system call: says which one, and ends. Writes only, since the interrupted code may hold any lock.
void OnForbidden(int, siginfo_t* info, void*) {
  const Message message = {static_cast<uint32_t>(Say::kForbidden), static_cast<uint32_t>(info->si_syscall), 0};
  if (write(kSocket, &message, sizeof message) < 0) _exit(122);
  _exit(121);
}

// The runtime's functions that the worker itself calls, looked up before the candidate is there.
struct Runtime {
  decltype(&cudaSetDevice) set_device = RUNTIME(cudaSetDevice);
  decltype(&cudaFree) free = RUNTIME(cudaFree);
  decltype(&cudaGetLastError) last_error = RUNTIME(cudaGetLastError);
  decltype(&cudaGetErrorString) error_string = RUNTIME(cudaGetErrorString);
  decltype(&cudaDeviceSynchronize) wait = RUNTIME(cudaDeviceSynchronize);
  decltype(&cudaIpcOpenMemHandle) open = RUNTIME(cudaIpcOpenMemHandle);
  decltype(&cudaMemsetAsync) fill = RUNTIME(cudaMemsetAsync);
  decltype(&cudaMemcpyAsync) copy = RUNTIME(cudaMemcpyAsync);
  decltype(&cudaEventCreate) make_event = RUNTIME(cudaEventCreate);
  decltype(&cudaEventRecord) record = RUNTIME(cudaEventRecord);
  decltype(&cudaEventElapsedTime) elapsed = RUNTIME(cudaEventElapsedTime);
};

// The plan as the evaluator sent it, with pointers in place of offsets.
struct Plan {
  uint32_t calls = 0;
  std::vector<uint64_t> values;  // what the arguments point to
  std::vector<void*> arguments;  // calls * parameters
  uint32_t parameters = 0;
  std::vector<PlanCopy> staged, copies;
  char* copy_memory = nullptr;
  uint32_t gates = 0;
};

Plan MakePlan(const std::vector<char>& payload, const std::vector<char*>& lent) {
  PlanHeader header;
  std::memcpy(&header, payload.data(), sizeof header);
  Plan plan;
  plan.calls = header.calls;
  plan.parameters = header.parameters;
  plan.gates = header.gates;
  const size_t count = static_cast<size_t>(header.calls) * header.parameters;
  plan.values.resize(count);
  plan.arguments.resize(count);
  const char* at = payload.data() + sizeof header;
  for (size_t i = 0; i < count; ++i, at += sizeof(PlanValue)) {
    PlanValue value;
    std::memcpy(&value, at, sizeof value);
    plan.values[i] =
        value.memory != 0 ? reinterpret_cast<uint64_t>(lent.at(value.memory - 1) + value.value) : value.value;
    plan.arguments[i] = &plan.values[i];
  }
  plan.staged.resize(header.staged);
  std::memcpy(plan.staged.data(), at, plan.staged.size() * sizeof(PlanCopy));
  at += plan.staged.size() * sizeof(PlanCopy);
  plan.copies.resize(header.copies);
  if (header.staged + header.copies > 0) plan.copy_memory = lent.at(header.copy_memory - 1);
  std::memcpy(plan.copies.data(), at, plan.copies.size() * sizeof(PlanCopy));
  return plan;
}

bool WriteFile(const std::string& path, const char* bytes, size_t count) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0500);
  const bool whole = file >= 0 && write(file, bytes, count) == static_cast<ssize_t>(count);
  if (file >= 0) close(file);
  return whole;
}

// Loads the candidate, behind the system call filter from here on. Returns the reason if that fails, else "".
std::string LoadCandidate(const OwnKernels& own, const std::string& path, const std::vector<char>& payload,
                          bool filtered, void (**call)(void**)) {
  LoadHeader header;
  if (payload.size() < sizeof header) return "a message is too short";
  std::memcpy(&header, payload.data(), sizeof header);
  if (header.object_bytes > payload.size() - sizeof header) return "a message is too short";
  const char* const object = payload.data() + sizeof header;
  if (!WriteFile(path, object, header.object_bytes)) return "cannot write " + path;
  // Kept for as long as the process lives: the runtime reads the code when a kernel is first used.
  static std::vector<char> device_code;
  device_code.assign(object + header.object_bytes, payload.data() + payload.size());
  struct sigaction action = {};
  action.sa_sigaction = OnForbidden;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSYS, &action, nullptr);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (filtered) {
    const std::string failure = kgrpo::evaluator::InstallGpuWorkerFilter();
    if (!failure.empty()) return failure;
  }
  if (!device_code.empty()) {
    cudaLibrary_t code = nullptr;
    const cudaError_t status =
        LoadNearest(own, device_code.data(), VariablesOf(device_code.data(), device_code.size()), &code);
    if (status != cudaSuccess) return RUNTIME(cudaGetErrorString)(status);
    UseDeviceCode(code);
  }
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return why != nullptr ? why : "unknown";
  }
  if (header.may_be_placed != 0) PlaceRegistered(own);
  *call = reinterpret_cast<void (*)(void**)>(dlsym(library, "kgrpo_call"));
  return *call == nullptr ? "the entry function is missing" : "";
}

void DescribeLaunch(Done* done) {
  const LargestLaunch& largest = RuntimeLargestLaunch();
  int blocks = 0;
  cudaFuncAttributes attributes = {};
  const auto describe = RUNTIME(cudaFuncGetAttributes);
  const auto occupancy = RUNTIME(cudaOccupancyMaxActiveBlocksPerMultiprocessor);
  if (largest.kernel == nullptr || describe(&attributes, largest.kernel) != cudaSuccess ||
      occupancy(&blocks, largest.kernel, static_cast<int>(largest.block_threads), largest.shared_bytes) !=
          cudaSuccess) {
    RUNTIME(cudaGetLastError)();  // it is ours, not the candidate's
    return;
  }
  done->grid_blocks = largest.grid_blocks;
  done->block_threads = largest.block_threads;
  done->registers = static_cast<uint32_t>(attributes.numRegs);
  done->static_shared_bytes = static_cast<uint32_t>(attributes.sharedSizeBytes);
  done->dynamic_shared_bytes = static_cast<uint32_t>(largest.shared_bytes);
  done->resident_blocks = static_cast<uint32_t>(blocks);
}

int Serve(const std::string& scratch, bool filtered) {
  const Runtime cuda;
  cudaEvent_t begin = nullptr, end = nullptr;
  std::vector<char*> lent;
  cudaError_t status = cuda.set_device(0);
  if (status == cudaSuccess) status = cuda.free(nullptr);
  if (status == cudaSuccess) status = cuda.make_event(&begin);
  if (status == cudaSuccess) status = cuda.make_event(&end);
  if (status == cudaSuccess) status = KeepMemoryOfDefaultPool();
  OwnKernels own;
  if (status == cudaSuccess) status = own.Load();
  const std::string failure = status == cudaSuccess ? "" : cuda.error_string(status);
  const double launch_seconds = failure.empty() ? own.LaunchSeconds() : 0;
  TellReady({static_cast<uint64_t>(launch_seconds * 1e12), own.gates_error()}, failure);
  if (!failure.empty()) return 124;

  void (*call)(void**) = nullptr;
  Plan plan;
  Message message;
  while (ReadAll(&message, sizeof message)) {
    std::vector<char> payload(message.payload_bytes);
    if (!payload.empty() && !ReadAll(payload.data(), payload.size())) return 123;
    switch (static_cast<Ask>(message.kind)) {
      case Ask::kOpen: {
        cudaIpcMemHandle_t handle;
        std::memcpy(&handle, payload.data(), sizeof handle);
        void* memory = nullptr;
        status = cuda.open(&memory, handle, cudaIpcMemLazyEnablePeerAccess);
        lent.push_back(static_cast<char*>(memory));
        // A first kernel of the driver's, so that nothing of the context is left to be made in a timed call.
        if (status == cudaSuccess) status = cuda.fill(memory, kOpenedByte, kOpenedBytes, nullptr);
        if (status == cudaSuccess) status = cuda.wait();
        Tell(Say::kOpened, status == cudaSuccess ? "" : cuda.error_string(status));
        break;
      }
      case Ask::kLoad:
        Tell(Say::kLoaded, LoadCandidate(own, scratch + "/candidate.so", payload, filtered, &call));
        break;
      case Ask::kPlan:
        plan = MakePlan(payload, lent);
        Tell(Say::kPlanned, "");
        SpinForWord();
        break;
      case Ask::kGo: {
        RuntimeCounts() = {};
        RuntimeLargestLaunch() = {};
        Done done = {};
        if (plan.gates != 0) own.Gate(0, plan.gates, kPatienceNanoseconds);
        for (const PlanCopy& copy : plan.staged)
          cuda.copy(plan.copy_memory + copy.target, plan.copy_memory + copy.source, copy.bytes,
                    cudaMemcpyDeviceToDevice, nullptr);
        if (plan.gates != 0) own.Gate(1, plan.gates, kPatienceNanoseconds);
        cuda.record(begin, nullptr);
        for (uint32_t i = 0; i < plan.calls; ++i) {
          RuntimeBeginCall();
          call(&plan.arguments[static_cast<size_t>(i) * plan.parameters]);
        }
        cuda.record(end, nullptr);
        if (plan.gates != 0) Tell(Say::kQueued, "");
        done.launch_error = cuda.last_error();
        for (const PlanCopy& copy : plan.copies)
          cuda.copy(plan.copy_memory + copy.target, plan.copy_memory + copy.source, copy.bytes,
                    cudaMemcpyDeviceToDevice, nullptr);
        done.wait_error = cuda.wait();
        float milliseconds = 0;
        if (done.wait_error == cudaSuccess && cuda.elapsed(&milliseconds, begin, end) == cudaSuccess)
          done.event_seconds = static_cast<double>(milliseconds) * 1e-3;
        done.launches = RuntimeCounts().launches;
        done.allocations = RuntimeCounts().allocations;
        done.refused = RuntimeCounts().refused;
        if (plan.calls == 1 && done.launch_error == cudaSuccess && done.wait_error == cudaSuccess)
          DescribeLaunch(&done);
        Tell(Say::kDone, &done, sizeof done);
        break;
      }
      default: return 123;
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 120;
  // Host code of the fast route needs this library, but does not name it.
  dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL);
  const std::string failure = LoadRuntime(argv[1]);
  if (!failure.empty()) {
    TellReady({}, failure);
    return 124;
  }
  _exit(Serve(argv[2], argc <= 3 || std::strcmp(argv[3], "nofilter") != 0));
}
