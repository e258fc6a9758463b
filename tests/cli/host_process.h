// kgrpo-host as a child process that can be watched and killed. Used by the tests of runs that are killed.
#ifndef KGRPO_TESTS_CLI_HOST_PROCESS_H
#define KGRPO_TESTS_CLI_HOST_PROCESS_H

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace kgrpo::test {

// The quickstart's model if scripts/setup has made it; otherwise a smaller one, which does not learn enough for correct
// kernels.
inline std::filesystem::path QuickstartModel() {
  const std::filesystem::path source(KGRPO_SOURCE_DIR);
  const std::filesystem::path tiny = source / "build/models/tiny";
  return std::filesystem::exists(tiny / "tokenizer.json") ? tiny : source / "tests/golden/policy/qwen2";
}

// kgrpo-host as a child process in `directory`, with its caches in `directory` / cache. Its output is appended to a
// file there.
class HostProcess {
 public:
  HostProcess(const std::filesystem::path& directory, std::vector<std::string> arguments,
              const std::map<std::string, std::string>& environment = {}, const std::string& log_name = "err") {
    const std::string binary = KGRPO_BINARY_DIR "/bin/kgrpo-host";
    arguments.insert(arguments.begin(), binary);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    child_ = fork();
    if (child_ < 0) throw std::runtime_error("fork failed");
    if (child_ != 0) return;
    const int log = chdir(directory.c_str()) == 0 ? open(log_name.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644) : -1;
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    setenv("KGRPO_CACHE_DIR", "cache", 1);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    execv(binary.c_str(), argv.data());
    _exit(127);
  }

  bool Ended() {
    if (!ended_) ended_ = waitpid(child_, &status_, WNOHANG) == child_;
    return ended_;
  }

  // Kills the process as soon as `instant` returns true, and waits for its end. Returns true if a signal ended it.
  bool KillWhen(const std::function<bool()>& instant) {
    while (!Ended() && !instant()) std::this_thread::sleep_for(std::chrono::microseconds(200));
    if (!ended_) kill(child_, SIGKILL);
    Wait();
    return WIFSIGNALED(status_);
  }

  void Signal(int signal) { kill(child_, signal); }

  // The processes that it has started, by their environment variable RANK.
  std::map<std::string, pid_t> Ranks() const {
    std::map<std::string, pid_t> ranks;
    const std::string task = "/proc/" + std::to_string(child_) + "/task/" + std::to_string(child_) + "/children";
    std::ifstream children(task);
    for (pid_t process = 0; children >> process;) {
      std::ifstream environment("/proc/" + std::to_string(process) + "/environ", std::ios::binary);
      for (std::string variable; std::getline(environment, variable, '\0');) {
        if (variable.starts_with("RANK=")) ranks[variable.substr(5)] = process;
      }
    }
    return ranks;
  }

  // Waits for the end. Returns the exit code, or -1 if a signal ended the process.
  int Wait() {
    if (!ended_) waitpid(child_, &status_, 0);
    ended_ = true;
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
  }

 private:
  pid_t child_;
  int status_ = 0;
  bool ended_ = false;
};

}  // namespace kgrpo::test
#endif
