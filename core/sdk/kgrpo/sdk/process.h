// SPDX-License-Identifier: Apache-2.0
// kgrpo/sdk/process.h - a program run to its end within limits, and a folder for its files: for evaluators that start
// compilers and candidates. Linux.
//
// The limits keep an accident small. They are no sandbox: the program has the rights of whoever runs the host.
#ifndef KGRPO_SDK_PROCESS_H
#define KGRPO_SDK_PROCESS_H
#include <kgrpo/sdk/error.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace kgrpo {

// An empty folder, deleted at the end with what is in it.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_((std::filesystem::temp_directory_path() / "kgrpo-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr)
      throw Error(KGRPO_ERROR_UNAVAILABLE, "cannot make the folder " + path_ + ": " + std::strerror(errno));
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  // The absolute path of a file in it.
  std::string File(std::string_view name) const { return path_ + "/" + std::string(name); }
  // Writes a file and returns its path.
  std::string Write(std::string_view name, std::string_view text) const {
    std::ofstream file(File(name), std::ios::binary);
    if (!(file << text).flush()) throw Error(KGRPO_ERROR_UNAVAILABLE, "cannot write " + File(name));
    return File(name);
  }

 private:
  std::string path_;
};

struct ProcessLimits {
  double seconds = 10;                    // wall-clock limit; then the program's process group is killed
  size_t output_bytes = 64U << 20;        // of standard output and of standard error, each
  size_t memory_bytes = size_t{4} << 30;  // of address space
};

struct ProcessResult {
  int exit_code = 0;       // -1: a signal ended the program
  int signal = 0;          // the number of that signal
  bool timed_out = false;  // ended by the limit of seconds
  bool too_much = false;   // ended by the limit of output
  std::string output, errors;
  bool ok() const { return exit_code == 0; }
};

namespace internal {

// Both ends are closed on exec; dup2 makes copies that are not.
struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() {
    if (::pipe2(ends, O_CLOEXEC) != 0)
      throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  ~Pipe() {
    Close(0);
    Close(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void Close(int end) {
    if (ends[end] >= 0) ::close(ends[end]);
    ends[end] = -1;
  }
};

}  // namespace internal

// Runs a program (found on PATH) with those arguments, the first of which is its name, and an empty standard input, in
// a process group of its own. Throws only where it cannot be started.
inline ProcessResult RunProcess(const std::vector<std::string>& arguments, const ProcessLimits& limits = {}) {
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  internal::Pipe output, errors, started;  // exec's errno if it fails; closed if it succeeds
  const pid_t child = ::fork();
  if (child < 0) throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("cannot fork: ") + std::strerror(errno));
  if (child == 0) {  // only system calls from here to exec: other threads may have held locks
    ::setpgid(0, 0);
    const rlimit memory = {limits.memory_bytes, limits.memory_bytes}, core = {0, 0};
    ::setrlimit(RLIMIT_AS, &memory);
    ::setrlimit(RLIMIT_CORE, &core);
    ::dup2(::open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
    ::dup2(output.ends[1], 1);
    ::dup2(errors.ends[1], 2);
    ::execvp(argv[0], argv.data());
    const int problem = errno;
    [[maybe_unused]] const ssize_t told = ::write(started.ends[1], &problem, sizeof problem);
    ::_exit(127);
  }
  ::setpgid(child, child);  // parent and child both call it: either may run first
  for (internal::Pipe* pipe : {&output, &errors, &started}) pipe->Close(1);

  ProcessResult result;
  using Clock = std::chrono::steady_clock;
  const auto end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limits.seconds));
  pollfd open[] = {{output.ends[0], POLLIN, 0}, {errors.ends[0], POLLIN, 0}};
  std::string* texts[] = {&result.output, &result.errors};
  std::vector<char> buffer(1U << 16);
  while ((open[0].fd >= 0 || open[1].fd >= 0) && !result.timed_out && !result.too_much) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    const int ready = left <= 0 ? 0 : ::poll(open, 2, static_cast<int>(left) + 1);
    if (ready < 0) continue;  // a signal; revents is not set
    result.timed_out = ready == 0;
    for (int i = 0; i < 2 && !result.timed_out; ++i) {
      if (open[i].fd < 0 || open[i].revents == 0) continue;
      const ssize_t got = ::read(open[i].fd, buffer.data(), buffer.size());
      if (got > 0) texts[i]->append(buffer.data(), static_cast<size_t>(got));
      if (got == 0 || (got < 0 && errno != EINTR)) open[i].fd = -1;
      result.too_much = result.too_much || texts[i]->size() > limits.output_bytes;
    }
  }
  // The program may have closed its output and still run.
  int status = 0;
  while (!result.timed_out && !result.too_much && ::waitpid(child, &status, WNOHANG) == 0) {
    result.timed_out = Clock::now() >= end;
    ::usleep(200);
  }
  const bool ended = !result.timed_out && !result.too_much;
  ::kill(-child, SIGKILL);  // ends what the program left running
  if (!ended) ::waitpid(child, &status, 0);
  int problem = 0;
  if (::read(started.ends[0], &problem, sizeof problem) == static_cast<ssize_t>(sizeof problem))
    throw Error(KGRPO_ERROR_UNAVAILABLE, "cannot start " + arguments[0] + ": " + std::strerror(problem));
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  result.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return result;
}

}  // namespace kgrpo
#endif
