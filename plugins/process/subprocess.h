// Child processes: started with exactly the descriptors they are given, in a session of their own, killed with all
// their children, output capped, wall clock limited. Used for compilers, and below the sandbox for everything else.
#pragma once

#include <sys/types.h>  // pid_t

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kgrpo::process {

// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      Close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Descriptor() { Close(); }
  int get() const { return fd_; }
  void Close();

 private:
  int fd_;
};

// The reading and the writing end of a new pipe, which children do not inherit. Throws KGRPO_ERROR_UNAVAILABLE.
std::pair<Descriptor, Descriptor> MakePipe();

// Two connected sockets, one for a child. Throws KGRPO_ERROR_UNAVAILABLE.
std::pair<Descriptor, Descriptor> MakeSocketPair();

// A running child. Destroying it kills it. One thread at a time.
class Subprocess {
 public:
  struct Spec {
    std::vector<std::string> argv;                      // argv[0] is looked up in PATH
    std::vector<std::string> environment = {};          // "NAME=value"; empty: inherits this process's
    std::string directory = {};                         // working directory; empty: this process's
    std::vector<std::pair<int, int>> descriptors = {};  // (ours, the child's); 0 defaults to /dev/null
    bool quiet = false;                                 // 1 and 2 are /dev/null too
    bool own_session = true;                            // false: dies with this process's group
  };

  // How a child ended.
  struct Result {
    int exit_code = -1;  // where it exited
    int signal = 0;      // where a signal ended it
    bool timed_out = false;
    bool output_cut = false;  // more than the cap was written
    std::string output;       // standard output and error together
    double cpu_seconds = 0;
    bool Succeeded() const { return exit_code == 0 && signal == 0 && !timed_out; }
  };

  // Starts the child. Throws Error(KGRPO_ERROR_UNAVAILABLE) that names the program where it cannot be started.
  explicit Subprocess(const Spec& spec);
  ~Subprocess();
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  pid_t pid() const { return pid_; }

  // Kills the child and whatever it started in its session's process group.
  void Kill();

  // Waits up to `seconds` for the end; nothing where it still runs. The output is empty here.
  std::optional<Result> Wait(double seconds);

  // Processor time of the child and of what it has started that still runs; nothing where the system does not say.
  std::optional<double> ProcessorSeconds() const;

  // Starts a child, collects up to `output_cap` bytes of its output and waits for its end, killing it after `seconds`,
  // or when `stop`, asked several times a second, returns true: then it counts as timed out.
  static Result Run(Spec spec, double seconds, size_t output_cap = size_t{1} << 20,
                    const std::function<bool()>& stop = {});

 private:
  pid_t pid_ = -1;
  bool own_group_ = true;
  std::optional<Result> result_;
};

}  // namespace kgrpo::process
