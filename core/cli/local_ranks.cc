#include "cli/local_ranks.h"

#include "base/launch.h"
#include "loop/ranks.h"  // kSilence

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

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kGrace{15};  // longer than ranks take to notice a lost one (kSilence of loop/ranks.h)
constexpr std::chrono::seconds kAtOnce{1};  // from a user's second signal to SIGKILL
constexpr std::chrono::seconds kKilled{2};  // from SIGKILL to the end, of a process that can end

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
  unsetenv("TORCHELASTIC_USE_AGENT_STORE");  // set by a job in which this process was started
  std::vector<char*> words;
  words.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  execv("/proc/self/exe", words.data());
  _exit(127);
}

std::vector<pid_t> children;  // used by the signal handler; 0 for ranks that have ended
volatile std::sig_atomic_t signals = 0;

void SendToAll(int signal) {
  for (const pid_t child : children) {
    if (child > 0) kill(child, signal);
  }
}

void HandOn(int signal) {
  const int error = errno;
  signals = signals + 1;
  SendToAll(signal);
  errno = error;
}

constexpr int kHandedOn[] = {SIGINT, SIGTERM, SIGHUP};

void HandOnSignals() {
  struct sigaction action = {};
  action.sa_handler = HandOn;
  for (const int signal : kHandedOn) sigaction(signal, &action, nullptr);
}

// Waits until all ranks have ended. A signal that a stopped process does not take, and a rank that waits for a lost
// one, must not keep the command alive: such ranks are killed.
class Waiting {
 public:
  // Returns rank 0's exit code; 1 if a signal ended it, or if a killed rank cannot end. Polls: a signal that arrives
  // just before a blocking wait would be noticed only when a child changes.
  int ForAll() {
    while (std::any_of(children.begin(), children.end(), [](pid_t child) { return child > 0; })) {
      int status = 0;
      const pid_t changed = waitpid(-1, &status, WUNTRACED | WCONTINUED | WNOHANG);
      if (changed > 0) {
        Note(changed, status);
      } else if (changed < 0 && errno != EINTR) {
        break;
      } else if (changed == 0) {
        KillTheLate();
        if (AllAreStuck()) return 1;
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
    }
    return code_;
  }

 private:
  struct Rank {
    std::optional<Clock::time_point> stopped, killed;
  };

  void Note(pid_t process, int status) {
    // Other children come from a shell that exec'ed this program, or are orphans in a container where it is process 1.
    const auto child = std::find(children.begin(), children.end(), process);
    if (child == children.end()) return;
    Rank& rank = ranks_[static_cast<size_t>(child - children.begin())];
    if (WIFSTOPPED(status)) {
      if (!rank.stopped) rank.stopped = Clock::now();
      return;
    }
    rank.stopped.reset();
    if (WIFCONTINUED(status)) return;
    const bool leads = child == children.begin(), fine = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (leads && WIFEXITED(status)) code_ = WEXITSTATUS(status);
    if ((leads || !fine) && !ending_) ending_ = Clock::now();
    if (WIFSIGNALED(status) && !rank.killed) {
      std::fprintf(stderr, "rank %td (process %d) was ended by signal %d\n", child - children.begin(),
                   static_cast<int>(process), WTERMSIG(status));
    }
    *child = 0;
  }

  void KillTheLate() {
    const Clock::time_point now = Clock::now();
    if (signals > 1 && !hurried_) hurried_ = now;
    for (size_t i = 0; i < children.size(); ++i) {
      Rank& rank = ranks_[i];
      if (children[i] == 0 || rank.killed) continue;
      const char* why = nullptr;
      if (rank.stopped && (ending_ || now - *rank.stopped >= kSilence))
        why = "was stopped, by SIGSTOP or by its terminal";
      else if (ending_ && now - *ending_ >= kGrace)
        why = "has not ended with the others";
      else if (hurried_ && now - *hurried_ >= kAtOnce)
        why = "has not ended by the second signal";
      if (why == nullptr) continue;
      std::fprintf(stderr, "rank %zu (process %d) %s: it is killed\n", i, static_cast<int>(children[i]), why);
      kill(children[i], SIGKILL);
      rank.killed = now;
    }
  }

  // True where all that are left were killed, and wait in the kernel.
  bool AllAreStuck() const {
    for (size_t i = 0; i < children.size(); ++i) {
      if (children[i] > 0 && (!ranks_[i].killed || Clock::now() - *ranks_[i].killed < kKilled)) return false;
    }
    std::fprintf(stderr,
                 "a killed rank does not end: it waits in the kernel for a device or a file system, and ends when that "
                 "answers\n");
    return true;
  }

  std::vector<Rank> ranks_ = std::vector<Rank>(children.size());
  std::optional<Clock::time_point> ending_;   // since rank 0 ended, or another one failed
  std::optional<Clock::time_point> hurried_;  // since the user's second signal
  int code_ = 1;
};

}  // namespace

bool ShouldStartRanks(unsigned ranks) { return ranks > 1 && !ReadLaunch(); }

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
      SendToAll(SIGKILL);
      sigprocmask(SIG_SETMASK, &before, nullptr);
      throw Error(KGRPO_ERROR_UNAVAILABLE, "rank " + std::to_string(rank) + " cannot be started: " + reason);
    }
    children[rank] = child;
  }
  HandOnSignals();
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return Waiting().ForAll();
}

}  // namespace kgrpo::cli
