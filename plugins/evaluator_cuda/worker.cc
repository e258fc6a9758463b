#include "evaluator_cuda/worker.h"

#include <cuda_runtime_api.h>
#include <kgrpo/sdk/error.h>
#include <poll.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <set>

#include "evaluator_cuda/device_errors.h"
#include "judge/compile/candidate_form.h"
#include "judge/sandbox/seccomp_filter.h"
#include "process/frames.h"

namespace kgrpo::evaluator_cuda {

using evaluator::SandboxCommand;
using evaluator::ScratchFolder;
using process::Subprocess;
using Clock = std::chrono::steady_clock;

namespace {

constexpr double kStartSeconds = 60;  // for a process and its CUDA context, on a busy machine
// Time for which the evaluator polls for an answer before it sleeps. Waking up takes some 20 us, with variation, which
// would count as the candidate's time.
constexpr double kSpinSeconds = 5e-3;
constexpr double kQueueSeconds = 30e-3;  // for launching all calls of a plan with gates
constexpr double kStallSeconds = 5;      // a worker that does not read must not hold up the evaluator for longer
constexpr size_t kLargestAnswer = 1 << 16;

double Since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Returns whether the worker may load the candidate's code a second time (worker/placement.h). Not if the candidate
// names a kernel or variable to a runtime function that the worker does not replace (worker/interposed.cc), nor if
// libraries bring code of their own.
bool MayBePlaced(const evaluator::CompiledKernel& kernel) {
  if (evaluator::UsesFormLibraries(kernel)) return false;
  static const std::set<std::string> kInterposed = {
      "cudaFuncGetAttributes", "cudaFuncSetAttribute", "cudaFuncSetCacheConfig",
      "cudaOccupancyMaxActiveBlocksPerMultiprocessor", "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags"};
  return std::none_of(kernel.undefined.begin(), kernel.undefined.end(), [](const std::string& symbol) {
    const bool of_kernel = symbol.starts_with("cudaFunc") || symbol.starts_with("cudaOccupancy");
    const bool of_node = symbol.starts_with("cudaGraph") &&
                         (symbol.find("Add") != std::string::npos || symbol.find("SetParams") != std::string::npos);
    return (of_kernel && kInterposed.count(symbol) == 0) || of_node || symbol == "cudaGetKernel" ||
           symbol == "cudaGetFuncBySymbol" || symbol == "__cudaRegisterManagedVar";
  });
}

std::string SignalText(int signal) {
  switch (signal) {
    case SIGSEGV: return "a segmentation fault (device pointers cannot be followed by host code)";
    case SIGABRT: return "abort()";
    default: return std::string(strsignal(signal)) + " (signal " + std::to_string(signal) + ")";
  }
}

}  // namespace

Worker::Worker(const evaluator::Sandbox& sandbox, const Options& options) : options_(options) {
  auto [ours, theirs] = process::MakeSocketPair();
  socket_ = std::move(ours);
  // Inside namespaces /tmp is the worker's own; without them it gets a folder.
  if (!sandbox.has_namespaces()) scratch_ = std::make_unique<ScratchFolder>(sandbox);
  SandboxCommand command;
  command.argv = {options_.helper_directory + "/kgrpo_cuda_worker", options_.runtime_library,
                  scratch_ ? scratch_->path() : "/tmp"};
  if (!sandbox.has_filter()) command.argv.emplace_back("nofilter");
  command.environment = {"LC_ALL=C", "CUDA_VISIBLE_DEVICES=" + options_.device_uuid, "CUDA_CACHE_DISABLE=1",
                         "CUDA_DEVICE_ORDER=PCI_BUS_ID",
                         "CUDA_DEVICE_MAX_CONNECTIONS=" + std::to_string(options_.connections)};
  if (scratch_) command.scratch = scratch_->path();
  command.readable = options_.readable;
  command.readable.push_back(std::filesystem::path(options_.runtime_library).parent_path().string());
  command.descriptors = {
      {theirs.get(), kSocket}, {gates_.open_descriptor(), kGates}, {gates_.reached_descriptor(), kReached}};
  command.compiler_filter = false;  // it installs its own before it loads the candidate
  command.gpu = true;
  command.gpu_node = options_.device_node;
  command.cpu_seconds = 86400;  // a reference's worker lives long; each run has its limit
  command.file_bytes = uint64_t{256} << 20;
  command.processes = 512;  // the driver's threads count too
  Subprocess::Spec spec = sandbox.Wrap(command);
  spec.quiet = true;  // what a candidate prints goes nowhere
  process_ = std::make_unique<Subprocess>(spec);
}

Worker::Heard Worker::Hear(Message* message, std::vector<char>* payload, double seconds) {
  double spins = kSpinSeconds;
  const auto read_all = [&](void* data, size_t bytes) {
    const double before = seconds;
    const process::Heard heard = process::ReadExactly(socket_.get(), data, bytes, &seconds, spins);
    spins -= before - seconds;
    return heard == process::Heard::kWhole  ? Heard::kMessage
           : heard == process::Heard::kLate ? Heard::kLate
                                            : Heard::kEnded;
  };
  if (const Heard heard = read_all(message, sizeof *message); heard != Heard::kMessage) return heard;
  if (message->payload_bytes > kLargestAnswer) return Heard::kNonsense;
  payload->resize(message->payload_bytes);
  return read_all(payload->data(), payload->size());
}

bool Worker::Send(Ask kind, const void* payload, size_t bytes) {
  const Message message = {static_cast<uint32_t>(kind), 0, bytes};
  return process::SendExactly(
      socket_.get(),
      {{reinterpret_cast<const char*>(&message), sizeof message}, {static_cast<const char*>(payload), bytes}},
      kStallSeconds);
}

Trouble Worker::EndOf(Heard how) {
  if (how == Heard::kLate) {
    process_->Kill();
    return {"timeout",
            "It did not end within " + std::to_string(static_cast<int>(options_.call_seconds)) + " seconds."};
  }
  socket_.Close();
  if (how == Heard::kNonsense) {
    process_->Kill();
    return {"forbidden", "The host code wrote to the evaluator's own descriptor."};
  }
  std::optional<Subprocess::Result> end = process_->Wait(5);
  if (!end) {
    process_->Kill();
    end = process_->Wait(3600);
  }
  int signal = end->signal;
  if (end->exit_code > 128 && end->exit_code < 128 + 65) signal = end->exit_code - 128;  // as shells and bwrap say it
  if (signal == SIGXCPU || signal == SIGKILL) return {"timeout", "It used up its limit of CPU time or memory."};
  if (signal == SIGSYS)
    return {"forbidden",
            "The host code made a system call that is not allowed, perhaps to start a process or a thread."};
  if (signal != 0) return {"crash", "The host code crashed: " + SignalText(signal) + "."};
  if (Trouble broken = evaluator::FormBroken(end->exit_code)) return broken;
  return {"crash", "The host code ended its process (exit code " + std::to_string(end->exit_code) +
                       ") before the launch function returned."};
}

Trouble Worker::Expect(Say wanted, std::vector<char>* payload, double seconds) {
  Message message = {};
  const Heard heard = Hear(&message, payload, seconds);
  if (heard != Heard::kMessage) return EndOf(heard);
  if (message.kind == static_cast<uint32_t>(wanted)) return {};
  if (message.kind == static_cast<uint32_t>(Say::kForbidden)) {
    process_->Kill();
    return {"forbidden", "The host code made a system call that is not allowed: " +
                             evaluator::SystemCallName(static_cast<int>(message.detail & 0xffff)) +
                             " (no processes, threads, files to write or network)."};
  }
  process_->Kill();
  return {"forbidden", "The host code wrote an unexpected message to the evaluator's socket."};
}

bool Worker::HasAnswered() const {
  struct pollfd wait = {socket_.get(), POLLIN, 0};
  return poll(&wait, 1, 0) != 0 || Since(started_) > kStartSeconds;
}

void Worker::WaitReady() {
  std::vector<char> said;
  const Trouble trouble = Expect(Say::kReady, &said, std::max(0.1, kStartSeconds - Since(started_)));
  Ready ready = {};
  const bool whole = !trouble && said.size() >= sizeof ready;
  if (whole) std::memcpy(&ready, said.data(), sizeof ready);
  launch_seconds_ = static_cast<double>(ready.launch_picoseconds) * 1e-12;
  if (!gates_.sealed()) {
    no_gates_ = "this system cannot seal memory against later writers, which Linux can from 5.1 on";
  } else if (ready.gates_error != cudaSuccess) {
    const auto error = static_cast<cudaError_t>(ready.gates_error);
    no_gates_ = std::string("the device cannot use memory that is read-only for its process: ") +
                cudaGetErrorName(error) + ": " + cudaGetErrorString(error);
  }
  if (whole && said.size() == sizeof ready) return;
  const std::string reason = trouble ? trouble.sentence
                             : whole ? std::string(said.begin() + sizeof ready, said.end())
                                     : "what it said is too short";
  const std::string message = "the sandboxed worker process (kgrpo_cuda_worker) got no CUDA context: " + reason;
  if (reason.find("out of memory") == std::string::npos) throw Error(KGRPO_ERROR_UNAVAILABLE, message);
  throw OutOfMemory(message +
                    "; each takes some 500 MB of the device: end other programs on the device (nvidia-smi lists them), "
                    "choose another, or lower evaluator_cuda's option workers");
}

void Worker::Open(const std::vector<uint8_t>& ipc_handle) {
  std::vector<char> why;
  Send(Ask::kOpen, ipc_handle.data(), ipc_handle.size());
  const Trouble trouble = Expect(Say::kOpened, &why, kStartSeconds);
  if (!trouble && why.empty()) return;
  throw Error(KGRPO_ERROR_UNAVAILABLE, "the sandboxed worker process cannot open the evaluator's device memory: " +
                                           (trouble ? trouble.sentence : std::string(why.begin(), why.end())));
}

Trouble Worker::Load(const evaluator::CompiledKernel& kernel) {
  const LoadHeader header = {kernel.object.size(), MayBePlaced(kernel) ? uint64_t{1} : 0};
  std::string text(reinterpret_cast<const char*>(&header), sizeof header);
  text += kernel.object;
  text += kernel.cubin;
  std::vector<char> payload;
  Send(Ask::kLoad, text.data(), text.size());
  // Libraries that come with it are read from a disk.
  const double seconds = evaluator::UsesFormLibraries(kernel) ? kStartSeconds : options_.call_seconds;
  if (Trouble trouble = Expect(Say::kLoaded, &payload, seconds)) return trouble;
  if (payload.empty()) return {};
  const std::string why(payload.begin(), payload.end());
  const std::string undefined = "undefined symbol: ";
  const size_t at = why.find(undefined);
  if (at == std::string::npos) return {"unsupported", "The compiled kernel could not be loaded."};
  const size_t begin = at + undefined.size();
  return {"unsupported", "The host code uses " +
                             why.substr(begin, std::min(why.find_first_of(", \n", begin) - begin, size_t{120})) +
                             ", which is not there."};
}

Trouble Worker::Prepare(const Plan& plan) {
  PlanHeader header = {};
  header.calls = static_cast<uint32_t>(plan.calls.size());
  header.parameters = static_cast<uint32_t>(plan.calls.empty() ? 0 : plan.calls[0].size());
  header.copies = static_cast<uint32_t>(plan.copies.size());
  header.staged = static_cast<uint32_t>(plan.staged.size());
  header.copy_memory = plan.copy_memory;
  header.gates = plan.gated ? gates_.Next() : 0;
  std::string text(reinterpret_cast<const char*>(&header), sizeof header);
  for (const std::vector<Plan::Value>& call : plan.calls) {
    for (const Plan::Value& value : call) {
      const PlanValue sent = {value.memory, value.value};
      text.append(reinterpret_cast<const char*>(&sent), sizeof sent);
    }
  }
  for (const PlanCopy& copy : plan.staged) text.append(reinterpret_cast<const char*>(&copy), sizeof copy);
  for (const PlanCopy& copy : plan.copies) text.append(reinterpret_cast<const char*>(&copy), sizeof copy);
  std::vector<char> nothing;
  Send(Ask::kPlan, text.data(), text.size());
  return Expect(Say::kPlanned, &nothing, options_.call_seconds);
}

Trouble Worker::Run(Done* done) {
  Send(Ask::kGo, nullptr, 0);
  return HearDone(done);
}

Trouble Worker::Queue(bool* queued) {
  Send(Ask::kGo, nullptr, 0);
  struct pollfd wait = {socket_.get(), POLLIN, 0};
  const Clock::time_point begin = Clock::now();
  while (poll(&wait, 1, 0) == 0 && Since(begin) < kQueueSeconds) {
  }
  *queued = wait.revents != 0;
  if (!*queued) {
    gates_.Open(0);
    gates_.Open(1);
  }
  std::vector<char> nothing;
  return Expect(Say::kQueued, &nothing, options_.call_seconds);
}

bool Worker::Stage() {
  gates_.Open(0);
  return gates_.WaitReached(1, kQueueSeconds);
}

Trouble Worker::Finish(Done* done) {
  gates_.Open(1);
  return HearDone(done);
}

Trouble Worker::HearDone(Done* done) {
  std::vector<char> payload;
  if (Trouble trouble = Expect(Say::kDone, &payload, options_.call_seconds)) return trouble;
  if (payload.size() != sizeof *done)
    return {"forbidden", "The host code wrote an unexpected message to the evaluator's socket."};
  std::memcpy(done, payload.data(), sizeof *done);
  return TroubleOf(done->launch_error, done->wait_error);
}

}  // namespace kgrpo::evaluator_cuda
