#include "process/subprocess.h"

#include <fcntl.h>
#include <kgrpo/sdk/error.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>

extern char** environ;

namespace kgrpo::process {
namespace {

using Clock = std::chrono::steady_clock;

int MillisecondsUntil(Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return left < 0 ? 0 : static_cast<int>(std::min<int64_t>(left, 1'000'000)) + 1;
}

Clock::time_point After(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// Of a process and its descendants: the second and third of /proc/PID/stat's times, in clock ticks. Adds nothing for
// one that is gone.
void AddTicks(pid_t process, uint64_t* ticks) {
  const std::string folder = "/proc/" + std::to_string(process);
  std::ifstream stat(folder + "/stat");
  std::string text((std::istreambuf_iterator<char>(stat)), {});
  const size_t name_end = text.rfind(')');  // a name may hold blanks and brackets
  if (name_end == std::string::npos) return;
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int i = 3; i <= 13; ++i) fields >> skipped;
  uint64_t user = 0, system = 0;
  if (fields >> user >> system) *ticks += user + system;
  std::ifstream children(folder + "/task/" + std::to_string(process) + "/children");
  for (pid_t child = 0; children >> child;) AddTicks(child, ticks);
}

}  // namespace

void Descriptor::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

Subprocess::Subprocess(const Spec& spec) {
  std::vector<char*> argv, environment;
  for (const std::string& argument : spec.argv) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  for (const std::string& entry : spec.environment) environment.push_back(const_cast<char*>(entry.c_str()));
  environment.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  if (spec.quiet) {
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  }
  // Moves our descriptors to higher numbers first, so that a number of the child's cannot overwrite one that is still
  // to be passed.
  std::vector<Descriptor> moved;
  int last = 2;
  for (const auto& descriptor : spec.descriptors) last = std::max(last, descriptor.second);
  for (const auto& [ours, theirs] : spec.descriptors) {
    moved.emplace_back(fcntl(ours, F_DUPFD_CLOEXEC, last + 1));
    if (moved.back().get() < 0) {
      const int why = errno;
      posix_spawn_file_actions_destroy(&actions);
      throw Error(KGRPO_ERROR_UNAVAILABLE, spec.argv[0] + ": cannot be given a descriptor: " + std::strerror(why));
    }
    posix_spawn_file_actions_adddup2(&actions, moved.back().get(), theirs);
  }
  posix_spawn_file_actions_addclosefrom_np(&actions, last + 1);
  if (!spec.directory.empty()) posix_spawn_file_actions_addchdir_np(&actions, spec.directory.c_str());
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  const int session = spec.own_session ? POSIX_SPAWN_SETSID : 0;
  posix_spawnattr_setflags(&attributes, static_cast<short>(session | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
  own_group_ = spec.own_session;
  const int failure = posix_spawnp(&pid_, argv[0], &actions, &attributes, argv.data(),
                                   spec.environment.empty() ? environ : environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failure != 0) {
    pid_ = -1;
    throw Error(KGRPO_ERROR_UNAVAILABLE, spec.argv[0] + ": cannot be started: " + std::strerror(failure));
  }
}

std::pair<Descriptor, Descriptor> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("cannot make a pipe: ") + std::strerror(errno));
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

std::pair<Descriptor, Descriptor> MakeSocketPair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("cannot make a socket pair: ") + std::strerror(errno));
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

Subprocess::~Subprocess() {
  if (pid_ < 0 || result_) return;
  Kill();
  Wait(3600);
}

void Subprocess::Kill() {
  if (pid_ < 0 || result_) return;
  if (own_group_) kill(-pid_, SIGKILL);
  kill(pid_, SIGKILL);
}

std::optional<Subprocess::Result> Subprocess::Wait(double seconds) {
  if (result_) return result_;
  int status = 0;
  struct rusage usage = {};
  pid_t waited = wait4(pid_, &status, WNOHANG, &usage);
  if (waited == 0 && seconds > 0) {
    const Clock::time_point deadline = After(seconds);
    const Descriptor handle(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
    while (waited == 0 && Clock::now() < deadline) {
      struct pollfd event = {handle.get(), POLLIN, 0};
      // Without pidfd_open (Linux before 5.3) poll just sleeps for a short while.
      poll(&event, 1, handle.get() >= 0 ? MillisecondsUntil(deadline) : 2);
      waited = wait4(pid_, &status, WNOHANG, &usage);
    }
  }
  if (waited == 0) return std::nullopt;
  Result result;
  if (waited > 0 && WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (waited > 0 && WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  const auto seconds_of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  result.cpu_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  if (own_group_) kill(-pid_, SIGKILL);  // whatever it left behind in its process group
  result_ = result;
  return result;
}

std::optional<double> Subprocess::ProcessorSeconds() const {
  if (result_) return std::nullopt;
  const std::string children = "/proc/" + std::to_string(pid_) + "/task/" + std::to_string(pid_) + "/children";
  if (access(children.c_str(), R_OK) != 0) return std::nullopt;
  uint64_t ticks = 0;
  AddTicks(pid_, &ticks);
  return static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

Subprocess::Result Subprocess::Run(Spec spec, double seconds, size_t output_cap, const std::function<bool()>& stop) {
  constexpr int kLookMilliseconds = 200;  // between questions to `stop`
  auto [reader, writer] = MakePipe();
  spec.descriptors.emplace_back(writer.get(), 1);
  spec.descriptors.emplace_back(writer.get(), 2);
  Subprocess child(spec);
  writer.Close();
  const Clock::time_point deadline = After(seconds);
  std::string output;
  bool cut = false, timed_out = false;
  // Processes that the child leaves running may hold the pipe open, so wait for the child's end beside the pipe's.
  const Descriptor handle(static_cast<int>(syscall(SYS_pidfd_open, child.pid(), 0)));
  bool ended = false;
  char buffer[16384];
  while (true) {
    struct pollfd events[2] = {{reader.get(), POLLIN, 0}, {ended ? -1 : handle.get(), POLLIN, 0}};
    const int most = stop ? kLookMilliseconds : std::numeric_limits<int>::max();
    const int ready = poll(events, 2, ended ? 0 : std::min(most, MillisecondsUntil(deadline)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0 && ended) break;
    if (Clock::now() >= deadline || (stop && stop())) {  // also while it floods the pipe
      timed_out = true;
      break;
    }
    if (ready <= 0) continue;
    if (events[1].revents != 0) {
      ended = true;
      child.Wait(0);  // kills what is left of its group; what they wrote is still read
    }
    if (events[0].revents == 0) continue;
    const ssize_t count = read(reader.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    const size_t kept = std::min(static_cast<size_t>(count), output_cap - output.size());
    output.append(buffer, kept);
    if (kept < static_cast<size_t>(count)) cut = true;
  }
  std::optional<Result> result;
  if (!timed_out) result = child.Wait(std::chrono::duration<double>(deadline - Clock::now()).count());
  if (!result) {
    timed_out = true;
    child.Kill();
    result = child.Wait(3600);
  }
  result->timed_out = timed_out;
  result->output = std::move(output);
  result->output_cut = cut;
  return *result;
}

}  // namespace kgrpo::process
