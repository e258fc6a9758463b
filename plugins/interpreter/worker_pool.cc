#include "interpreter/worker_pool.h"

#include <algorithm>
#include <utility>

#include "process/frames.h"

namespace kgrpo::interpreter {

using evaluator::SandboxCommand;
using evaluator::ScratchFolder;
using process::Heard, process::Subprocess;

namespace {

// For one message, which a worker writes or reads at once: meanwhile no stop is looked at.
constexpr double kStallSeconds = 5;

}  // namespace

Worker::Worker(const evaluator::Sandbox& sandbox, const std::string& helper_directory, uint64_t cpu_seconds) {
  auto [ours, theirs] = process::MakeSocketPair();
  socket_ = std::move(ours);
  // With namespaces, /tmp is private to the worker; without them the worker gets a scratch folder.
  if (!sandbox.has_namespaces()) scratch_ = std::make_unique<ScratchFolder>(sandbox);
  SandboxCommand command;
  command.argv = {helper_directory + "/kgrpo_sim_worker", scratch_ ? scratch_->path() : "/tmp"};
  if (!sandbox.has_filter()) command.argv.emplace_back("nofilter");
  // Without /proc the loader cannot resolve $ORIGIN to find our libcudart beside the worker.
  command.environment = {"LC_ALL=C", "LD_LIBRARY_PATH=" + helper_directory};
  if (scratch_) command.scratch = scratch_->path();
  command.descriptors = {{theirs.get(), kSocket}};
  command.compiler_filter = false;  // it installs a tighter one before it loads the candidate
  command.cpu_seconds = cpu_seconds;
  command.memory_bytes = uint64_t{4} << 30;
  command.file_bytes = uint64_t{64} << 20;
  command.processes = 64;
  Subprocess::Spec spec = sandbox.Wrap(command);
  spec.quiet = true;  // discards the candidate's output
  process_ = std::make_unique<Subprocess>(spec);
}

bool Worker::HasRequest(double most, double* seconds) {
  if (*seconds <= 0) return true;
  return process::WaitReadable(socket_.get(), most, seconds) || *seconds <= 0;
}

Worker::Event Worker::Receive(Request* request, std::vector<uint8_t>* payload, double* seconds) {
  double left = std::min(*seconds, kStallSeconds);
  const auto read = [&](void* data, size_t bytes) {
    const double before = left;
    const Heard heard = process::ReadExactly(socket_.get(), data, bytes, &left);
    *seconds -= before - left;
    return heard == Heard::kWhole ? Event::kRequest : heard == Heard::kLate ? Event::kTimeout : Event::kEnded;
  };
  if (const Event event = read(request, sizeof *request); event != Event::kRequest) return event;
  if (request->operation < static_cast<uint32_t>(Operation::kReady) ||
      request->operation > static_cast<uint32_t>(Operation::kWait) || request->payload_bytes > kLargestPayload) {
    malformed_ = true;
    return Event::kEnded;
  }
  payload->resize(request->payload_bytes);
  return read(payload->data(), payload->size());
}

void Worker::Answer(const Reply& reply, const void* payload, size_t payload_bytes) {
  Reply head = reply;
  head.payload_bytes = payload_bytes;
  // A worker that does not read must not hold up the evaluator: the next Receive tells its end.
  process::SendExactly(
      socket_.get(),
      {{reinterpret_cast<const char*>(&head), sizeof head}, {static_cast<const char*>(payload), payload_bytes}},
      kStallSeconds);
}

Subprocess::Result Worker::End() {
  socket_.Close();
  std::optional<Subprocess::Result> result = process_->Wait(malformed_ ? 0 : 2);
  if (!result) {
    process_->Kill();
    result = process_->Wait(3600);
  }
  if (result->exit_code > 128 && result->exit_code < 128 + 65) {
    result->signal = result->exit_code - 128;
    result->exit_code = -1;
  }
  return *result;
}

WorkerPool::WorkerPool(const evaluator::Sandbox& sandbox, std::string helper_directory, size_t spares,
                       uint64_t cpu_seconds)
    : ProcessPool(spares, [&sandbox, helper_directory = std::move(helper_directory), cpu_seconds] {
        return std::make_unique<Worker>(sandbox, helper_directory, cpu_seconds);
      }) {
  Fill();
}

}  // namespace kgrpo::interpreter
