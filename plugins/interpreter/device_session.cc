#include "interpreter/device_session.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>

#include "interpreter/client/cuda_types.h"
#include "judge/compile/candidate_form.h"
#include "judge/compile/elf_tables.h"
#include "judge/sandbox/seccomp_filter.h"

namespace kgrpo::interpreter {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLookSeconds = 0.2;                     // between looks for a stop
constexpr double kWallOfHost = 10;                       // times host_seconds, for code that waits
constexpr uint64_t kMostKeptBytes = uint64_t{32} << 20;  // of a candidate's own device memory
constexpr size_t kMostAllocations = 4096;                // each takes pages of this process, whatever its size
constexpr uint32_t kDefaultSharedBytes = 48 * 1024;
// Times that host code waits for beside kernels, measured on an H200: between two events around a kernel, the call and
// another kernel, less the same without the call (notes/). A copy to the host and cudaFree wait for the device.
constexpr double kPageableBytesPerSecond = 12e9;
constexpr double kCopyToHostSeconds = 12.4e-6, kCopyToDeviceSeconds = 7.8e-6, kCopyWithinSeconds = 8e-6,
                 kMemsetSeconds = 3.2e-6;
constexpr uint64_t kOwnPages = uint64_t{2} << 20;  // allocations from this size on are mapped and unmapped one by one
constexpr double kMallocSeconds = 2e-6, kMapSeconds = 45e-6, kFreeSeconds = 7.4e-6, kUnmapSeconds = 43e-6;

std::string SignalText(int signal) {
  switch (signal) {
    case SIGSEGV: return "a segmentation fault (device pointers cannot be followed by host code)";
    case SIGABRT: return "abort()";
    case SIGFPE: return "a division by zero";
    case SIGBUS: return "a bus error";
    case SIGILL: return "an illegal instruction";
    default: return "signal " + std::to_string(signal);
  }
}

// Makes text from the worker printable and short.
std::string SafeText(const std::vector<uint8_t>& bytes) {
  std::string text;
  for (uint8_t byte : bytes) {
    if (text.size() < 120) text += byte >= 0x20 && byte < 0x7f ? static_cast<char>(byte) : '?';
  }
  return text;
}

// The host goes on so long after the device has ended, and the device so long after a launch that follows; as measured
// between kernels (h200_prices.csv).
constexpr double kWakeSeconds = 7e-6, kLaunchAgainSeconds = 2.7e-6;

}  // namespace

void HostClock::Submit(double seconds) {
  const double start = std::max(device_, host_ - ahead_);
  idle_ += start - device_;
  device_ = start + seconds;
  ahead_ = kAhead;
}

void HostClock::Wait(bool submitted) {
  host_ = std::max(host_, device_) + (submitted ? kWakeSeconds : 0);
  if (submitted) ahead_ = -kLaunchAgainSeconds;
}

double HostClock::Idle() const { return idle_ + std::max(0.0, host_ - device_ - kAhead); }

void DeviceSession::Copy(double seconds, bool waits) {
  record_->copy_seconds += seconds;
  clock_.Submit(seconds);
  if (waits) clock_.CatchUp();
}

DeviceSession::DeviceSession(std::shared_ptr<const simt::Module> module,
                             std::map<std::string, evaluator::KernelUsage> usage, std::string source,
                             const simt::Device& device, const Limits& limits)
    : module_(std::move(module)),
      usage_(std::move(usage)),
      source_(std::move(source)),
      device_(device),
      limits_(limits),
      memory_(limits.device_bytes),
      instance_(module_, memory_),
      coverage_(module_->kernels().size()) {}

void DeviceSession::ThrowIfCancelled() const {
  if (limits_.cancelled && limits_.cancelled()) throw Error(KGRPO_ERROR_CANCELLED, "stopped by the user");
}

void DeviceSession::Stop(const std::string& code, const std::string& sentence) {
  if (!trouble_) trouble_ = {code, sentence};
}

Trouble DeviceSession::EndOf(Worker& worker, Worker::Event event) {
  if (event == Worker::Event::kTimeout) {
    record_->host_timed_out = true;
    return {"timeout", "The host code did not return within " + std::to_string(static_cast<int>(host_wall_)) +
                           " seconds, and used little processor time: does it wait?"};
  }
  if (worker.malformed()) return {"forbidden", "The host code wrote malformed data to the evaluator's socket."};
  const process::Subprocess::Result end = worker.End();
  if (end.signal == SIGXCPU || end.signal == SIGKILL) {
    return {"timeout", "The host code used up its limit of CPU time or memory."};
  }
  if (end.signal == SIGSYS) return {"forbidden", "The host code made a system call that is not allowed."};
  if (end.signal != 0) return {"crash", "The host code crashed: " + SignalText(end.signal) + "."};
  if (Trouble broken = evaluator::FormBroken(end.exit_code)) return broken;
  return {"crash", "The host code ended its process (exit code " + std::to_string(end.exit_code) +
                       ") before the launch function returned."};
}

void DeviceSession::BeginHost(double seconds) {
  host_seconds_left_ = host_wall_ = kWallOfHost * seconds;
  host_processor_.reset();
  copying_seconds_ = 0;
}

// True if the host code has had its processor time in this call. Costs nothing before it has had as much wall clock.
bool DeviceSession::HostUsedItsTime(const Worker& worker) {
  const double used = host_wall_ - host_seconds_left_;
  if (used < kLookSeconds) return false;
  if (!host_processor_) host_processor_ = worker.ProcessorSeconds();
  if (used < limits_.host_seconds) return false;
  const std::optional<double> now = worker.ProcessorSeconds();
  return !now || !host_processor_ || *now - *host_processor_ > limits_.host_seconds - kLookSeconds;
}

Trouble DeviceSession::ServeUntil(Worker& worker, Operation wanted, Request* request, std::vector<uint8_t>* payload) {
  while (true) {
    bool used = false;
    while (!(used = HostUsedItsTime(worker)) && !worker.HasRequest(kLookSeconds, &host_seconds_left_))
      ThrowIfCancelled();
    if (used) {
      return {"timeout", "The host code did not return within " +
                             std::to_string(static_cast<int>(limits_.host_seconds)) + " seconds of processor time."};
    }
    const Worker::Event event = worker.Receive(request, payload, &host_seconds_left_);
    if (event != Worker::Event::kRequest) return EndOf(worker, event);
    const auto operation = static_cast<Operation>(request->operation);
    clock_.Spend((request->continues >> 1) * 1e-8);
    record_->unexplained_seconds += static_cast<double>(request->unexplained) * 1e-9;
    if (operation == wanted) return {};
    if (operation == Operation::kForbidden) {
      const std::string name = evaluator::SystemCallName(static_cast<int>(request->a & 0xffff));
      return {"forbidden", "The host code made a system call that is not allowed: " + name +
                               " (no processes, threads, files to write or network)."};
    }
    if (operation == Operation::kReady || operation == Operation::kLoaded || operation == Operation::kReturned) {
      return {"forbidden", "The host code wrote an unexpected message to the evaluator's socket."};
    }
    ThrowIfCancelled();
    const Clock::time_point begin = Clock::now();
    const double before = ThreadSeconds();
    try {
      Serve(worker, *request, *payload);
    } catch (const Error& error) {  // a range that is not the candidate's
      if (error.code() != KGRPO_ERROR_INVALID) throw;
      Stop("out_of_bounds", std::string("A copy or memset by the host code: ") + error.what());
    }
    if (trouble_) return trouble_;
    const double spent = ThreadSeconds() - before;
    processor_seconds_ += spent;
    if (operation == Operation::kLaunch) continue;  // it looks at its own time
    // The rest of the time was spent on waiting until the worker reads its answer.
    const double waited = std::chrono::duration<double>(Clock::now() - begin).count() - spent;
    host_seconds_left_ = std::max(0.0, host_seconds_left_ - waited);
    copying_seconds_ += spent;
    if (copying_seconds_ > limits_.host_seconds || processor_seconds_ > limits_.processor_seconds) {
      const bool copies = copying_seconds_ > limits_.host_seconds;
      const double most = copies ? limits_.host_seconds : limits_.processor_seconds;
      return {"timeout", std::string(copies ? "The host code's copies and memsets" : "Its calls") +
                             " did not end within " + std::to_string(static_cast<int>(most)) +
                             " seconds of processor time."};
    }
  }
}

void DeviceSession::Reset() {
  instance_.ResetGlobals();  // as in a fresh process
  for (const auto& [address, owned] : owned_by_candidate_) memory_.Free(address);
  owned_by_candidate_.clear();
  memory_.ClearObjects();
  shared_limits_.clear();
  for (const simt::KernelInfo& kernel : module_->kernels()) {
    shared_limits_.push_back(kDefaultSharedBytes - std::min(kDefaultSharedBytes, kernel.static_shared_bytes));
  }
}

Trouble DeviceSession::Load(Worker& worker, const std::string& object) {
  Request request = {};
  std::vector<uint8_t> payload;
  Reset();
  const std::vector<std::string> symbols = evaluator::UndefinedSymbols(object);
  pins_host_memory_ = std::any_of(symbols.begin(), symbols.end(), [](const std::string& symbol) {
    return symbol == "cudaMallocHost" || symbol == "cudaHostAlloc";
  });
  BeginHost(limits_.host_seconds + 20);  // time to start the process, not charged to the candidate
  trouble_ = {};
  CallRecord ignored;
  record_ = &ignored;
  Trouble trouble = ServeUntil(worker, Operation::kReady, &request, &payload);
  if (trouble) {
    throw Error(KGRPO_ERROR_UNAVAILABLE,
                "the sandboxed worker process (kgrpo_sim_worker) ended before it was given anything to run (" +
                    trouble.sentence + "); is its libcudart.so.13 beside it?");
  }
  worker.Answer({0, 0, static_cast<uint64_t>(Command::kLoad), 0}, object.data(), object.size());
  BeginHost(limits_.host_seconds);
  instructions_left_ = limits_.warp_instructions;
  trouble = ServeUntil(worker, Operation::kLoaded, &request, &payload);
  record_ = nullptr;
  if (trouble || request.a == 0) return trouble;
  std::string words(payload.begin(), payload.end());
  const std::string undefined = "undefined symbol: ";
  if (const size_t at = words.find(undefined); at != std::string::npos) {
    const std::string symbol =
        words.substr(at + undefined.size(), words.find_first_of(", \n", at + undefined.size()) - at - undefined.size());
    return {"unsupported", "The host code uses " + symbol.substr(0, 120) + ", which this evaluator does not offer."};
  }
  return {"unsupported", "The compiled kernel could not be loaded."};
}

void DeviceSession::KeepState() {
  kept_.clear();
  uint64_t bytes = 0;
  for (const auto& [address, allocation] : memory_.allocations()) bytes += allocation->bytes();
  state_kept_ = bytes <= kMostKeptBytes;
  if (!state_kept_) return;
  kept_owned_ = owned_by_candidate_;
  for (const auto& [address, allocation] : memory_.allocations()) {
    std::vector<uint8_t>& bytes_of = kept_[address];
    bytes_of.resize(allocation->bytes());
    memory_.Read(address, bytes_of.data(), bytes_of.size());
  }
}

bool DeviceSession::RestoreState() {
  if (!state_kept_ || owned_by_candidate_ != kept_owned_) return false;
  for (const auto& [address, bytes] : kept_) {
    simt::Allocation* allocation = memory_.Find(address);
    if (allocation == nullptr || allocation->bytes() != bytes.size()) return false;
    std::memcpy(allocation->data(), bytes.data(), bytes.size());
  }
  return true;
}

void DeviceSession::BeginCall(simt::Mode mode, const BlockChoice& choice, CallRecord* record) {
  mode_ = mode;
  block_choice_ = choice;
  instructions_left_ = choice.warp_instructions != 0 ? choice.warp_instructions : limits_.warp_instructions;
  instructions_of_call_ = instructions_left_;
  BeginHost(limits_.host_seconds);
  record_ = record;
  l2_ = {};
  clock_ = {};
  in_flight_.Clear();
  trouble_ = {};
}

Trouble DeviceSession::Play(const std::vector<std::vector<uint8_t>>& launches, simt::Mode mode,
                            const BlockChoice& choice, CallRecord* record) {
  BeginCall(mode, choice, record);
  for (size_t kernel = 0; kernel < shared_limits_.size(); ++kernel) {
    const auto most = static_cast<uint32_t>(device_.shared_bytes_per_block);
    shared_limits_[kernel] = most - std::min(most, module_->kernels()[kernel].static_shared_bytes);
  }
  for (size_t i = 0; i < launches.size() && !trouble_; ++i) {
    ThrowIfCancelled();
    const double before = ThreadSeconds();
    Launch(launches[i]);
    processor_seconds_ += ThreadSeconds() - before;
  }
  record->host_seconds = clock_.Idle();
  record_ = nullptr;
  return trouble_;
}

Trouble DeviceSession::Call(Worker& worker, const std::vector<uint64_t>& arguments, simt::Mode mode,
                            const BlockChoice& choice, CallRecord* record) {
  BeginCall(mode, choice, record);
  worker.Answer({0, 0, static_cast<uint64_t>(Command::kCall), 0}, arguments.data(),
                arguments.size() * sizeof(uint64_t));
  Request request = {};
  std::vector<uint8_t> payload;
  const Trouble trouble = ServeUntil(worker, Operation::kReturned, &request, &payload);
  record->host_seconds = clock_.Idle();
  record_ = nullptr;
  return trouble;
}

Reply DeviceSession::Allocate(uint64_t bytes, bool is_array) {
  if (!limits_.device_malloc) {
    Stop("forbidden", "The host code allocates device memory, which this problem does not allow.");
    return {kCudaMemoryAllocation, 0, 0, 0};
  }
  Copy(bytes < kOwnPages ? kMallocSeconds : kMapSeconds, false);
  const bool fits = bytes <= limits_.device_bytes && owned_by_candidate_.size() < kMostAllocations &&
                    memory_.bytes_allocated() <= limits_.device_bytes - bytes;
  const simt::DeviceAddress address =
      fits ? memory_.Allocate(bytes, is_array ? "a CUDA array" : "memory of cudaMalloc") : 0;
  if (address == 0) {
    Stop("out_of_memory", "The host code asked for " + std::to_string(bytes) +
                              " bytes of device memory, more than is available, or for too many pieces.");
    return {kCudaMemoryAllocation, 0, 0, 0};
  }
  owned_by_candidate_[address] = true;
  return {kCudaSuccess, 0, address, 0};
}

void DeviceSession::Serve(Worker& worker, const Request& request, const std::vector<uint8_t>& payload) {
  const double dram = device_.dram_bytes_per_second * device_.dram_efficiency;
  const Reply success = {kCudaSuccess, 0, 0, 0};
  const double first = (request.continues & 1u) == 0 ? 1 : 0;  // of a copy's rows, which together cost one call
  switch (static_cast<Operation>(request.operation)) {
    case Operation::kAllocate: {
      const Reply reply = Allocate(request.a, request.b == 1);
      if (!trouble_) worker.Answer(reply);
      return;
    }
    case Operation::kFree: {
      const simt::Allocation* allocation = memory_.Find(request.a);
      const bool mapped = allocation != nullptr && allocation->bytes() >= kOwnPages;
      Copy(mapped ? kUnmapSeconds : kFreeSeconds, true);
      if (owned_by_candidate_.erase(request.a) == 0) {
        return Stop("crash", "The host code frees memory that is not its own or is free already.");
      }
      memory_.Free(request.a);
      return worker.Answer(success);
    }
    case Operation::kWrite:
      record_->host_writes = true;
      memory_.Write(request.a, payload.data(), payload.size());
      Copy(first * kCopyToDeviceSeconds + static_cast<double>(payload.size()) / kPageableBytesPerSecond, true);
      return worker.Answer(success);
    case Operation::kRead: {
      if (request.b > kLargestPayload) return Stop("forbidden", "The host code sent a malformed copy.");
      std::vector<uint8_t> bytes(request.b);
      memory_.Read(request.a, bytes.data(), bytes.size());
      record_->reads_back = true;
      Copy(first * kCopyToHostSeconds + static_cast<double>(bytes.size()) / kPageableBytesPerSecond, true);
      return worker.Answer(success, bytes.data(), bytes.size());
    }
    case Operation::kCopy:
      record_->host_writes = true;
      memory_.Copy(request.a, request.b, request.c);
      Copy(first * kCopyWithinSeconds + 2 * static_cast<double>(request.c) / dram, false);
      return worker.Answer(success);
    case Operation::kMemset:
      record_->host_writes = true;
      memory_.Memset(request.a, static_cast<uint8_t>(request.b), request.c);
      Copy(kMemsetSeconds + static_cast<double>(request.c) / dram, false);
      return worker.Answer(success);
    case Operation::kKernel: {
      const int index = module_->FindKernel(std::string(payload.begin(), payload.end()));
      if (index < 0) {
        return Stop("unsupported",
                    "The host code launches a kernel that the compiled module lacks: " + SafeText(payload) + ".");
      }
      const simt::KernelInfo& info = module_->kernels()[static_cast<size_t>(index)];
      if (info.parameters.size() > 256)
        return Stop("unsupported", "Kernel " + info.name + " has more than 256 parameters.");
      const KernelReply head = {info.parameter_bytes,
                                static_cast<uint32_t>(info.parameters.size()),
                                info.static_shared_bytes,
                                info.local_bytes,
                                static_cast<uint32_t>(ResourcesOf(index, 0).registers_per_thread),
                                info.max_threads};
      std::vector<uint8_t> answer(sizeof head + info.parameters.size() * sizeof(KernelParameterReply));
      std::memcpy(answer.data(), &head, sizeof head);
      for (size_t i = 0; i < info.parameters.size(); ++i) {
        const KernelParameterReply parameter = {info.parameters[i].offset, info.parameters[i].size};
        std::memcpy(answer.data() + sizeof head + i * sizeof parameter, &parameter, sizeof parameter);
      }
      return worker.Answer({kCudaSuccess, 0, static_cast<uint64_t>(index), 0}, answer.data(), answer.size());
    }
    case Operation::kGlobal: {
      const std::string name(payload.begin(), payload.end());
      for (const simt::GlobalInfo& global : module_->globals()) {
        if (global.name != name) continue;
        return worker.Answer({kCudaSuccess, 0, instance_.GlobalAddress(name), 0}, &global.bytes, sizeof global.bytes);
      }
      return worker.Answer({kCudaInvalidSymbol, 0, 0, 0});
    }
    case Operation::kSharedLimit: {
      if (request.a >= shared_limits_.size()) return worker.Answer({kCudaInvalidDeviceFunction, 0, 0, 0});
      const uint64_t fixed = module_->kernels()[request.a].static_shared_bytes;
      if (request.b > device_.shared_bytes_per_block || request.b + fixed > device_.shared_bytes_per_block) {
        return Stop("invalid_launch", "cudaFuncSetAttribute asks for " + std::to_string(request.b) +
                                          " bytes of dynamic shared memory; a block has at most " +
                                          std::to_string(device_.shared_bytes_per_block) + ", " +
                                          std::to_string(fixed) + " of them static.");
      }
      shared_limits_[request.a] = static_cast<uint32_t>(request.b);
      return worker.Answer(success);
    }
    case Operation::kRefused:
      return Stop("unsupported", "The host code uses " + SafeText(payload) + ", which this evaluator does not offer.");
    case Operation::kOccupancy: {
      if (request.a >= shared_limits_.size() || request.b == 0 || request.b > 1024 ||
          request.c > device_.shared_bytes_per_block) {
        return worker.Answer({kCudaInvalidValue, 0, 0, 0});
      }
      const simt::KernelResources resources =
          ResourcesOf(static_cast<int>(request.a), static_cast<uint32_t>(request.c));
      const simt::Occupancy occupancy = simt::ComputeOccupancy(device_, resources, static_cast<uint32_t>(request.b));
      return worker.Answer({kCudaSuccess, 0, static_cast<uint64_t>(occupancy.blocks_per_multiprocessor), 0});
    }
    case Operation::kAddObject: {
      constexpr size_t kMostObjects = 4096;
      simt::ImageObject object;
      if (payload.size() != sizeof object) return Stop("forbidden", "The host code sent a malformed image.");
      std::memcpy(&object, payload.data(), sizeof object);
      if (!simt::IsValid(object)) return Stop("forbidden", "The host code sent a malformed image.");
      if (memory_.objects() == kMostObjects)
        return Stop("out_of_memory",
                    "The host code keeps more than " + std::to_string(kMostObjects) + " texture and surface objects.");
      return worker.Answer({kCudaSuccess, 0, memory_.AddObject(object), 0});
    }
    case Operation::kRemoveObject:
      if (!memory_.RemoveObject(request.a)) return worker.Answer({kCudaInvalidValue, 0, 0, 0});
      return worker.Answer(success);
    case Operation::kWait: clock_.Wait(request.a != 0); return worker.Answer(success);
    case Operation::kLaunch: {
      const Reply reply = Launch(payload);
      if (!trouble_) worker.Answer(reply);
      return;
    }
    default: return Stop("forbidden", "The host code sent a malformed question.");
  }
}

}  // namespace kgrpo::interpreter
