#include "plugin/child.h"

#include <fcntl.h>
#include <kgrpo/sdk/error.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>

namespace kgrpo {
namespace {

// The last byte of a child's output. Without it the body did not return: other code ended the process.
constexpr char kBodyReturned = '\0';

void WriteAll(int descriptor, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t count = write(descriptor, text.data() + done, text.size() - done);
    if (count < 0 && errno != EINTR) _exit(3);  // the parent is gone
    if (count > 0) done += static_cast<size_t>(count);
  }
}

[[noreturn]] void ChildMain(int descriptor,
                            const std::function<void(const std::function<void(const std::string&)>&)>& body) {
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);  // a crash is a result here, not something to keep
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_DFL);
  // A file, so that the callers of plugins can see whether a plugin wrote to standard output.
  const int output = memfd_create("standard output", MFD_CLOEXEC);
  if (output >= 0) dup2(output, STDOUT_FILENO);
  try {
    body([descriptor](const std::string& text) { WriteAll(descriptor, text); });
    WriteAll(descriptor, std::string(1, kBodyReturned));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    _exit(2);
  } catch (...) {
    _exit(2);
  }
  _exit(0);  // no destructors of libraries whose state is unknown
}

}  // namespace

ChildResult RunInChild(const std::function<void(const std::function<void(const std::string&)>&)>& body, int seconds) {
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) {
    throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) {
    const int reason = errno;
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("cannot make a child process: ") + std::strerror(reason));
  }
  if (child == 0) {
    close(pipe_ends[0]);
    ChildMain(pipe_ends[1], body);
  }
  close(pipe_ends[1]);

  ChildResult result;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  bool killed = false;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waiting = {pipe_ends[0], POLLIN, 0};
    const int ready = poll(&waiting, 1, std::max<int>(0, static_cast<int>(left.count())));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      if (killed) break;  // a process that the child started may hold the pipe open
      kill(child, SIGKILL);
      killed = true;
      continue;
    }
    char buffer[4096];
    const ssize_t count = read(pipe_ends[0], buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    result.output.append(buffer, static_cast<size_t>(count));
  }
  close(pipe_ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (killed) {
    result.failure = "did not finish within " + std::to_string(seconds) + " s";
  } else if (WIFSIGNALED(status)) {
    result.failure =
        "crashed with signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
  } else if (!result.output.ends_with(kBodyReturned)) {
    result.failure = "ended the process with status " + std::to_string(WEXITSTATUS(status)) + " (it called exit)";
  } else {
    result.output.pop_back();
  }
  return result;
}

}  // namespace kgrpo
