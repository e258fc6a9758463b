#include "cli/local_ranks.h"

#include "base/launch.h"

#include <arpa/inet.h>
#include <kgrpo/sdk/error.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace kgrpo::cli {
namespace {

// A port that nobody listens at now.
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
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);
  const std::string number = std::to_string(rank), count = std::to_string(ranks);
  setenv("RANK", number.c_str(), 1);
  setenv("LOCAL_RANK", number.c_str(), 1);
  setenv("WORLD_SIZE", count.c_str(), 1);
  setenv("LOCAL_WORLD_SIZE", count.c_str(), 1);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  setenv("MASTER_PORT", std::to_string(port).c_str(), 1);
  std::vector<char*> words;
  words.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  execv("/proc/self/exe", words.data());
  _exit(127);
}

std::vector<pid_t> children;  // the handler's; set before it is

void HandOn(int signal) {
  for (const pid_t child : children) kill(child, signal);
}

}  // namespace

bool StartsRanks(unsigned ranks) {
  return ranks > 1 && !ReadLaunch();
}

int RunLocalRanks(unsigned ranks) {
  const std::vector<std::string> arguments = OwnArguments();
  const uint16_t port = FreePort();
  const pid_t parent = getpid();
  for (unsigned rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) BecomeRank(arguments, rank, ranks, port, parent);
    if (child < 0) {
      const std::string reason = std::strerror(errno);
      HandOn(SIGTERM);
      throw Error(KGRPO_ERROR_UNAVAILABLE, "rank " + std::to_string(rank) + " cannot be started: " + reason);
    }
    // A terminal's Ctrl-C must come once: from here.
    setpgid(child, child);
    children.push_back(child);
  }
  struct sigaction action = {};
  action.sa_handler = HandOn;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
  int code = 1;
  for (const pid_t child : children) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (child == children.front()) code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  }
  return code;
}

}  // namespace kgrpo::cli
