// The sandbox that compilers and candidates run in. Probed once: bubblewrap's namespaces where the machine allows them,
// and always resource limits, no_new_privs and a system call filter; one sentence describes what is in force.
// Used by the compilers here and by each evaluator's worker pool.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "process/subprocess.h"  // Subprocess

namespace kgrpo::evaluator {

enum class SandboxMode {
  kStrict,  // namespaces and system call filter, or an error
  kAuto,    // as much as the machine allows
  kOff,     // resource limits only: for debugging
};

// "strict", "off"; anything else is auto, as the option schemas of the evaluators have it.
SandboxMode SandboxModeFromName(const std::string& name);

// $TMPDIR, or /tmp.
std::string TemporaryDirectory();
// Throws Error(KGRPO_ERROR_UNAVAILABLE) that names it where no files can be made in it.
void CheckTemporaryDirectory();

// The launcher's exit code where it cannot set a limit or a filter, or cannot run the program.
inline constexpr int kLauncherFailed = 125;

// The program to run inside, and its limits.
struct SandboxCommand {
  std::vector<std::string> argv;
  std::vector<std::string> environment;               // "NAME=value", complete
  std::string scratch;                                // a folder it may write, seen under the same path; "" for none
  std::vector<std::string> readable;                  // files and folders it may read beside the system's own
  std::vector<std::pair<int, int>> descriptors = {};  // (ours, the child's)
  bool compiler_filter = true;  // installs the filter for compilers; a worker installs its own, tighter one
  // Lets the GPU's device nodes and /sys in, and limits data in place of address space, of which CUDA maps far more
  // than it uses.
  bool gpu = false;
  std::string gpu_node;  // the node of the one GPU that is let in, as /dev/nvidia0; "" for all
  uint64_t cpu_seconds = 60;
  uint64_t memory_bytes = uint64_t{8} << 30;  // of address space
  uint64_t file_bytes = uint64_t{256} << 20;
  uint64_t processes = 256;
  uint64_t open_files = 64;
  // With compiler_filter: sockets are allowed, for programs of several processes that speak through the loopback
  // device. Only where has_namespaces(): elsewhere the network is the machine's.
  bool sockets = false;
};

class Sandbox {
 public:
  // Finds out what works by running a program in it. `helper_directory` holds sandbox_launcher. Commands must be able
  // to read it and `must_read`, so running as another user is ruled out where these lie in a private home. Throws
  // Error(KGRPO_ERROR_UNAVAILABLE) where `mode` is strict and a measure cannot be had, saying which one and why.
  Sandbox(SandboxMode mode, std::string helper_directory, std::vector<std::string> must_read = {});

  // Returns this sandbox without its strongest measure, for programs that do not work in it. The filter and the limits
  // always stay. Returns nothing where only those are left, or where `mode` was strict. `why` goes into the
  // description.
  std::optional<Sandbox> Weaker(const std::string& why) const;

  // Description of the sandbox: "bubblewrap 0.8.0 (user, pid, network, ipc, mount namespaces), seccomp, no_new_privs,
  // limits".
  const std::string& description() const { return description_; }
  bool has_namespaces() const { return namespaces_; }
  bool has_filter() const { return filter_; }

  // The command line that runs `command` inside.
  process::Subprocess::Spec Wrap(const SandboxCommand& command) const;

  // Makes a fresh folder that a command may use as scratch. The caller removes it (ScratchFolder does).
  std::string MakeScratch() const;

 private:
  bool Works(std::string* why) const;
  void FindWithoutNamespaces();
  void Describe();

  SandboxMode mode_;
  std::string helper_directory_;
  std::vector<std::string> must_read_;
  std::string bubblewrap_;  // its path where found
  bool namespaces_ = false;
  bool own_proc_ = false;  // a /proc of its own
  bool filter_ = false;
  bool landlock_ = false, reads_ = false;  // reads_: Landlock limits reads too
  bool drop_user_ = false;
  struct Missing {
    std::string what, why;
    std::string remedy = {};  // empty where none is known
  };
  std::vector<Missing> missing_;  // what the machine does not offer
  std::string description_;
};

// A scratch folder that is removed with everything in it.
class ScratchFolder {
 public:
  explicit ScratchFolder(const Sandbox& sandbox) : path_(sandbox.MakeScratch()) {}
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The folder of the helper programs that were built beside the evaluators: the folder `evaluator` beside the shared
// object or program that holds this code, or the one that KGRPO_EVALUATOR_HELPERS names. Throws
// Error(KGRPO_ERROR_UNAVAILABLE) that lists the places tried.
std::string FindHelperDirectory();

}  // namespace kgrpo::evaluator
