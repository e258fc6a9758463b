#include "cli/local_ranks.h"

#include "base/launch.h"

#include <arpa/inet.h>
#include <kgrpo/sdk/error.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace kgrpo::cli {
namespace {

constexpr std::chrono::seconds kGrace{15};  // longer than ranks take to notice a lost one (loop/ranks.cc)

// Returns a port on which nothing listens now.
uint16_t FreePort() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(place);
  const bool found = listener >= 0 && bind(listener, reinterpret_cast<sockaddr*>(&place), size) == 0 &&
                     getsockname(listener, reinterpret_cast<sockaddr*>(&place), &size) == 0;
  if (listener >= 0) close(listener);
  if (!found)
    throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("no port for the ranks to meet: ") + std::strerror(errno));
  return ntohs(place.sin_port);
}

std::vector<std::string> OwnArguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  return arguments;
}

[[noreturn]] void BecomeRank(std::vector<std::string> arguments, unsigned rank, unsigned ranks, uint16_t port,
                             pid_t parent) {
  setpgid(0, 0);  // a terminal's Ctrl-C must come once: from the parent
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);
  const std::string number = std::to_string(rank), count = std::to_string(ranks);
  setenv("RANK", number.c_str(), 1);
  setenv("LOCAL_RANK", number.c_str(), 1);
  setenv("WORLD_SIZE", count.c_str(), 1);
  setenv("LOCAL_WORLD_SIZE", count.c_str(), 1);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  setenv("MASTER_PORT", std::to_string(port).c_str(), 1);
  setenv("KGRPO_CRASH", "core", 0);          // a crash ends by its signal: WaitForAll can tell it from a failure
  unsetenv("TORCHELASTIC_USE_AGENT_STORE");  // set by a job in which this process was started
  std::vector<char*> words;
  words.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  execv("/proc/self/exe", words.data());
  _exit(127);
}

std::vector<pid_t> children;  // used by the signal handler; 0 for ranks that have ended

void HandOn(int signal) {
  const int error = errno;
  for (const pid_t child : children) {
    if (child > 0) kill(child, signal);
  }
  errno = error;
}

constexpr int kHandedOn[] = {SIGINT, SIGTERM, SIGHUP};

void HandOnSignals() {
  struct sigaction action = {};
  action.sa_handler = HandOn;
  action.sa_flags = SA_RESTART;
  for (const int signal : kHandedOn) sigaction(signal, &action, nullptr);
}

// Returns rank 0's exit code once all have ended. After a rank was killed, ranks that have met it end by themselves;
// ranks that still wait for it are killed after kGrace.
int WaitForAll() {
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> killed;
  bool told = false;
  int code = 1;
  for (size_t left = children.size(); left > 0;) {
    int status = 0;
    const pid_t ended = waitpid(-1, &status, killed ? WNOHANG : 0);
    if (ended > 0) {
      // Other children come from a shell that exec'ed this program, or are orphans in a container where it is process
      // 1.
      const auto child = std::find(children.begin(), children.end(), ended);
      if (child == children.end()) continue;
      if (child == children.begin() && WIFEXITED(status)) code = WEXITSTATUS(status);
      if (WIFSIGNALED(status) && !killed) killed = Clock::now();
      *child = 0;
      --left;
    } else if (ended < 0) {
      break;
    } else {
      if (!told && Clock::now() - *killed > kGrace) {
        std::fprintf(stderr, "a rank was killed before all had met: the others are ended\n");
        HandOn(SIGKILL);
        told = true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
  return code;
}

}  // namespace

bool StartsRanks(unsigned ranks) {
  return ranks > 1 && !ReadLaunch();
}

int RunLocalRanks(unsigned ranks) {
  const std::vector<std::string> arguments = OwnArguments();
  const uint16_t port = FreePort();
  const pid_t parent = getpid();
  children.assign(ranks, 0);
  sigset_t handed_on, before;
  sigemptyset(&handed_on);
  for (const int signal : kHandedOn) sigaddset(&handed_on, signal);
  sigprocmask(SIG_BLOCK, &handed_on, &before);  // a signal during the forks must reach all ranks
  for (unsigned rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      sigprocmask(SIG_SETMASK, &before, nullptr);
      BecomeRank(arguments, rank, ranks, port, parent);
    }
    if (child < 0) {
      const std::string reason = std::strerror(errno);
      HandOn(SIGKILL);
      sigprocmask(SIG_SETMASK, &before, nullptr);
      throw Error(KGRPO_ERROR_UNAVAILABLE, "rank " + std::to_string(rank) + " cannot be started: " + reason);
    }
    children[rank] = child;
  }
  HandOnSignals();
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return WaitForAll();
}

}  // namespace kgrpo::cli
