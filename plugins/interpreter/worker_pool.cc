#include "interpreter/worker_pool.h"

#include <kgrpo/sdk/error.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

namespace kgrpo::interpreter {

using evaluator::Descriptor;
using evaluator::SandboxCommand;
using evaluator::ScratchFolder;
using evaluator::Subprocess;

Worker::Worker(const evaluator::Sandbox& sandbox, const std::string& helper_directory, uint64_t cpu_seconds) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw Error(KGRPO_ERROR_UNAVAILABLE,
                std::string("cannot make a socket pair for a worker: ") + std::strerror(errno));
  }
  socket_ = Descriptor(ends[0]);
  const Descriptor theirs(ends[1]);
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

bool Worker::ReadExactly(void* data, size_t bytes, double* seconds, Event* event) {
  auto* at = static_cast<char*>(data);
  while (bytes > 0) {
    const auto before = std::chrono::steady_clock::now();
    struct pollfd wait = {socket_.get(), POLLIN, 0};
    const int ready = poll(&wait, 1, static_cast<int>(*seconds * 1000) + 1);
    *seconds -= std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0 || *seconds <= 0) {
      *event = Event::kTimeout;
      return false;
    }
    const ssize_t count = read(socket_.get(), at, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      *event = Event::kEnded;
      return false;
    }
    at += count;
    bytes -= static_cast<size_t>(count);
  }
  return true;
}

Worker::Event Worker::Receive(Request* request, std::vector<uint8_t>* payload, double* seconds) {
  Event event = Event::kRequest;
  if (!ReadExactly(request, sizeof *request, seconds, &event)) return event;
  if (request->operation < static_cast<uint32_t>(Operation::kReady) ||
      request->operation > static_cast<uint32_t>(Operation::kOccupancy) || request->payload_bytes > kLargestPayload) {
    malformed_ = true;
    return Event::kEnded;
  }
  payload->resize(request->payload_bytes);
  if (!ReadExactly(payload->data(), payload->size(), seconds, &event)) return event;
  return Event::kRequest;
}

void Worker::Answer(const Reply& reply, const void* payload, size_t payload_bytes) {
  Reply head = reply;
  head.payload_bytes = payload_bytes;
  struct iovec parts[2] = {{&head, sizeof head}, {const_cast<void*>(payload), payload_bytes}};
  struct msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  size_t left = sizeof head + payload_bytes;
  while (left > 0) {
    // MSG_DONTWAIT and a timeout: a worker that does not read must not block the evaluator.
    const ssize_t sent = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      struct pollfd wait = {socket_.get(), POLLOUT, 0};
      if (poll(&wait, 1, 5000) <= 0) return;
      continue;
    }
    if (sent <= 0) return;
    left -= static_cast<size_t>(sent);
    auto count = static_cast<size_t>(sent);
    for (struct iovec& part : parts) {
      const size_t used = std::min(count, part.iov_len);
      part.iov_base = static_cast<char*>(part.iov_base) + used;
      part.iov_len -= used;
      count -= used;
    }
  }
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
    : sandbox_(sandbox), helper_directory_(std::move(helper_directory)), spares_(spares), cpu_seconds_(cpu_seconds) {
  for (size_t i = 0; i < spares_; ++i) waiting_.push_back(Start());
}

std::unique_ptr<Worker> WorkerPool::Start() const {
  return std::make_unique<Worker>(sandbox_, helper_directory_, cpu_seconds_);
}

std::unique_ptr<Worker> WorkerPool::Take() {
  std::unique_ptr<Worker> next = Start();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (waiting_.empty()) return next;
  std::unique_ptr<Worker> taken = std::move(waiting_.front());
  waiting_.pop_front();
  waiting_.push_back(std::move(next));
  return taken;
}

}  // namespace kgrpo::interpreter
