#include "coder_gpt4o/client/key_command.h"

#include <fcntl.h>
#include <kgrpo/sdk/error.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <system_error>

#include "coder_gpt4o/client/ascii.h"

namespace kgrpo::coder_gpt4o {
namespace {

constexpr std::chrono::seconds kPatience(60);
constexpr size_t kLongest = size_t{64} << 10;

[[noreturn]] void Fail(const std::string& why) {
  throw Error(KGRPO_ERROR_UNAVAILABLE, "api_key_command " + why + ": run it in a shell to see why");
}

// Starts the command with `output` as its standard output.
pid_t Start(const std::string& command, int output) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;  // this thread blocks all
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  std::string shell = "/bin/sh", flag = "-c", text = command;
  char* arguments[] = {shell.data(), flag.data(), text.data(), nullptr};
  pid_t child = -1;
  const int failure = posix_spawn(&child, shell.c_str(), &files, &attributes, arguments, environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  return failure == 0 ? child : -1;
}

}  // namespace

std::string KeyOfCommand(const std::string& command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) Fail("cannot be started (" + std::generic_category().message(errno) + ")");
  const pid_t child = Start(command, ends[1]);
  close(ends[1]);
  std::string output;
  bool ended = false;
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (child > 0 && !ended && output.size() < kLongest) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
    pollfd readable = {ends[0], POLLIN, 0};
    if (left <= 0 || poll(&readable, 1, static_cast<int>(left)) == 0) break;
    char piece[4096];
    const ssize_t length = read(ends[0], piece, sizeof piece);
    ended = length == 0;
    if (length > 0) output.append(piece, static_cast<size_t>(length));
  }
  close(ends[0]);
  if (child <= 0) Fail("cannot be started");
  if (!ended) kill(-child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (!ended) Fail("did not end within " + std::to_string(kPatience.count()) + " s");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) Fail("failed");
  std::string key(Trimmed(output));
  if (key.empty()) Fail("wrote nothing to its standard output");
  return key;
}

}  // namespace kgrpo::coder_gpt4o
