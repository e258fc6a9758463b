#include "judge/sandbox/sandbox.h"

#include <dlfcn.h>
#include <kgrpo/sdk/error.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace kgrpo::evaluator {
namespace {

using process::Subprocess;

namespace fs = std::filesystem;

// What every program may read of the system.
constexpr const char* kSystem[] = {
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/ld.so.cache", "/etc/alternatives"};

std::string FindInPath(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string rest = path != nullptr ? path : "/usr/bin:/bin";
  while (!rest.empty()) {
    const size_t colon = rest.find(':');
    const std::string candidate = rest.substr(0, colon) + "/" + program;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
  }
  return "";
}

// /dev/nvidia0, /dev/nvidiactl, /dev/nvidia-uvm and their like; of the GPUs' own only `one`, where that is not "".
std::vector<std::string> GpuNodes(const std::string& one) {
  std::vector<std::string> nodes;
  std::error_code code;
  for (const fs::directory_entry& entry : fs::directory_iterator("/dev", code)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("nvidia", 0) != 0) continue;
    const bool is_gpu = name.size() > 6 && name.find_first_not_of("0123456789", 6) == std::string::npos;
    if (!is_gpu || one.empty() || entry.path() == one) nodes.push_back(entry.path().string());
  }
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

std::string FirstLine(const std::string& text) {
  const size_t end = text.find('\n');
  return end == std::string::npos ? text : text.substr(0, end);
}

}  // namespace

std::string TemporaryDirectory() {
  const char* given = std::getenv("TMPDIR");
  return given != nullptr && *given != '\0' ? given : "/tmp";
}

void CheckTemporaryDirectory() {
  const std::string folder = TemporaryDirectory();
  std::error_code code;
  const std::string wrong = folder[0] != '/'                           ? "not a whole path"
                            : !fs::is_directory(folder, code)          ? "no such folder"
                            : access(folder.c_str(), W_OK | X_OK) != 0 ? std::strerror(errno)
                                                                       : "";
  if (wrong.empty()) return;
  throw Error(KGRPO_ERROR_UNAVAILABLE, "the folder for temporary files, " + folder + ", cannot be used: " + wrong +
                                           "; set TMPDIR to one that this user can write to");
}

SandboxMode SandboxModeFromName(const std::string& name) {
  return name == "strict" ? SandboxMode::kStrict : name == "off" ? SandboxMode::kOff : SandboxMode::kAuto;
}

Sandbox::Sandbox(SandboxMode mode, std::string helper_directory, std::vector<std::string> must_read)
    : mode_(mode), helper_directory_(std::move(helper_directory)), must_read_(std::move(must_read)) {
  must_read_.push_back(helper_directory_);
  std::string why;
  if (mode_ == SandboxMode::kOff) {
    description_ = "off: resource limits only";
    if (!Works(&why)) throw Error(KGRPO_ERROR_UNAVAILABLE, "cannot run programs through sandbox_launcher: " + why);
    return;
  }
  filter_ = true;
  if (!Works(&why)) {
    missing_.push_back({"system call filter", why});
    filter_ = false;
    if (!Works(&why)) throw Error(KGRPO_ERROR_UNAVAILABLE, "cannot run programs through sandbox_launcher: " + why);
  }
  bubblewrap_ = FindInPath("bwrap");
  if (bubblewrap_.empty()) {
    missing_.push_back({"namespaces", "bwrap is not installed", "install the package bubblewrap"});
  } else {
    namespaces_ = true;
    own_proc_ = true;
    if (!Works(&why)) {
      own_proc_ = false;
      std::string again;
      if (!Works(&again)) {
        namespaces_ = false;
        missing_.push_back({"namespaces", why, "allow unprivileged user namespaces"});
      }
    }
  }
  if (!namespaces_) FindWithoutNamespaces();
  Describe();
  if (mode_ == SandboxMode::kStrict && !(namespaces_ && filter_)) {
    std::string lacks, remedies;
    for (const Missing& one : missing_) {
      lacks += (lacks.empty() ? "" : "; ") + one.what + " (" + one.why + ")";
      if (!one.remedy.empty()) remedies += one.remedy + ", or ";
    }
    throw Error(KGRPO_ERROR_UNAVAILABLE, "sandbox: strict is asked for, but this machine lacks " + lacks + "; " +
                                             remedies + "set sandbox: auto to run with less");
  }
}

void Sandbox::FindWithoutNamespaces() {
  std::string why, again;
  landlock_ = reads_ = true;
  if (!Works(&why)) {
    reads_ = false;
    if (!Works(&again)) landlock_ = false;
    missing_.push_back({landlock_ ? "landlock against reads" : "landlock", why});
  }
  if (geteuid() != 0) return;
  drop_user_ = true;
  if (!Works(&why)) drop_user_ = false, missing_.push_back({"another user", why});
}

void Sandbox::Describe() {
  description_.clear();
  if (namespaces_) {
    const Subprocess::Result version = Subprocess::Run({{bubblewrap_, "--version"}}, 10);
    description_ = FirstLine(version.output) + (own_proc_ ? "" : " without a /proc of its own") +
                   " (user, pid, network, ipc, uts and mount namespaces), ";
  }
  if (landlock_) description_ += reads_ ? "landlock against reads and writes, " : "landlock against writes, ";
  if (drop_user_) description_ += "user nobody, ";
  if (filter_) description_ += "seccomp filter, ";
  description_ += "no_new_privs, resource limits";
  if (missing_.empty()) return;
  description_ += "; missing:";
  for (const Missing& one : missing_) {
    description_ += (&one == &missing_.front() ? " " : ", ") + one.what;
    if (!one.remedy.empty()) description_ += " (" + one.remedy + ")";
  }
  if (!namespaces_ && !reads_)
    description_ += std::string("; a kernel's host code can read every file that ") +
                    (drop_user_ ? "all users" : "this user") + " can read";
}

std::optional<Sandbox> Sandbox::Weaker(const std::string& why) const {
  if (mode_ == SandboxMode::kStrict) return std::nullopt;
  Sandbox weaker = *this;
  if (namespaces_) {
    weaker.missing_.push_back({"namespaces", why});
    weaker.namespaces_ = weaker.own_proc_ = false;
    weaker.FindWithoutNamespaces();
  } else if (reads_) {
    weaker.missing_.push_back({"landlock against reads", why});
    weaker.reads_ = false;
  } else if (landlock_) {
    weaker.missing_.push_back({"landlock", why});
    weaker.landlock_ = false;
  } else if (drop_user_) {
    weaker.missing_.push_back({"another user", why});
    weaker.drop_user_ = false;
  } else {
    return std::nullopt;
  }
  weaker.Describe();
  return weaker;
}

bool Sandbox::Works(std::string* why) const try {
  ScratchFolder scratch(*this);
  SandboxCommand command;
  command.argv = {
      "/bin/sh", "-c",
      "for path; do test -r \"$path\" || { echo \"cannot read $path\"; exit 1; }; done; echo works > \"$0/probe\"",
      scratch.path()};
  command.argv.insert(command.argv.end(), must_read_.begin(), must_read_.end());
  command.readable = must_read_;
  command.environment = {"PATH=/usr/bin:/bin"};
  command.scratch = scratch.path();
  const Subprocess::Result result = Subprocess::Run(Wrap(command), 20, 4096);
  std::error_code code;
  if (result.Succeeded() && fs::file_size(scratch.path() + "/probe", code) > 0) return true;
  *why = result.timed_out ? "timed out" : FirstLine(result.output);
  if (why->empty())
    *why = "exit code " + std::to_string(result.exit_code) + ", signal " + std::to_string(result.signal);
  return false;
} catch (const Error& error) {  // also where a container has no user nobody to give the scratch folder to
  *why = error.what();
  return false;
}

Subprocess::Spec Sandbox::Wrap(const SandboxCommand& command) const {
  Subprocess::Spec spec;
  std::vector<std::string>& argv = spec.argv;
  if (namespaces_) {
    argv = {bubblewrap_,     "--unshare-user",       "--unshare-pid", "--unshare-net", "--unshare-ipc",
            "--unshare-uts", "--unshare-cgroup-try", "--uid",         "65534",         "--gid",
            "65534",         "--cap-drop",           "ALL",           "--hostname",    "sandbox"};
    const auto bind = [&argv](const char* how, const std::string& path) { argv.insert(argv.end(), {how, path, path}); };
    for (const char* path : kSystem) {
      std::error_code code;
      if (fs::exists(path, code)) bind("--ro-bind", path);
    }
    argv.insert(argv.end(), {own_proc_ ? "--proc" : "--dir", "/proc", "--dev", "/dev", "--size",
                             std::to_string(command.file_bytes), "--tmpfs", "/tmp"});
    if (command.gpu) {
      for (const std::string& node : GpuNodes(command.gpu_node)) bind("--dev-bind", node);
      bind("--ro-bind", "/sys");
    }
    bind("--ro-bind", helper_directory_);
    for (const std::string& path : command.readable) {
      if (path != helper_directory_) bind("--ro-bind", path);
    }
    if (!command.scratch.empty()) {
      bind("--bind", command.scratch);
      argv.insert(argv.end(), {"--chdir", command.scratch});
    } else {
      argv.insert(argv.end(), {"--chdir", "/tmp"});
    }
    argv.insert(argv.end(), {"--remount-ro", "/"});
    argv.emplace_back("--");
  } else {
    spec.directory = command.scratch.empty() ? "/" : command.scratch;
  }
  const auto option = [&argv](const char* name, const std::string& value) { argv.insert(argv.end(), {name, value}); };
  argv.push_back(helper_directory_ + "/sandbox_launcher");
  option("--cpu", std::to_string(command.cpu_seconds));
  option(command.gpu ? "--data" : "--memory", std::to_string(command.memory_bytes));
  option("--file-size", std::to_string(command.file_bytes));
  option("--processes", std::to_string(command.processes));
  option("--files", std::to_string(command.open_files));
  if (filter_ && command.compiler_filter) option("--filter", command.sockets && namespaces_ ? "profiler" : "compiler");
  if (landlock_) {
    option("--scratch", command.scratch);
    option("--write", "/dev/null");
    if (command.gpu) {
      for (const std::string& node : GpuNodes(command.gpu_node)) option("--write", node);
      option("--write", "/proc");  // where the driver names its threads
    }
  }
  if (landlock_ && reads_) {
    for (const char* path : kSystem) option("--read", path);
    for (const char* path : {"/dev/zero", "/dev/random", "/dev/urandom"}) option("--read", path);
    if (command.gpu) option("--read", "/sys");
    option("--read", helper_directory_);
    for (const std::string& path : command.readable) option("--read", path);
  }
  if (drop_user_) argv.emplace_back("--drop-user");
  argv.emplace_back("--");
  argv.insert(argv.end(), command.argv.begin(), command.argv.end());
  spec.environment = command.environment;
  if (spec.environment.empty()) spec.environment = {"PATH=/usr/bin:/bin"};
  spec.descriptors = command.descriptors;
  return spec;
}

std::string Sandbox::MakeScratch() const {
  std::string path = TemporaryDirectory() + "/kgrpo-scratch-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) {
    throw Error(KGRPO_ERROR_UNAVAILABLE,
                path + ": cannot make a scratch folder: " + std::strerror(errno) + "; set TMPDIR");
  }
  if (drop_user_ && chown(path.c_str(), 65534, 65534) != 0) {
    throw Error(KGRPO_ERROR_UNAVAILABLE, path + ": cannot be given to the user nobody: " + std::strerror(errno));
  }
  return path;
}

ScratchFolder::~ScratchFolder() {
  std::error_code code;
  fs::remove_all(path_, code);
}

std::string FindHelperDirectory() {
  std::string tried;
  const auto good = [&tried](const std::string& folder) {
    if (access((folder + "/sandbox_launcher").c_str(), X_OK) == 0) return true;
    tried += "\n  " + folder;
    return false;
  };
  if (const char* given = std::getenv("KGRPO_EVALUATOR_HELPERS"); given != nullptr && *given != '\0') {
    if (good(given)) return given;
  }
  Dl_info info = {};
  if (dladdr(reinterpret_cast<void*>(&FindHelperDirectory), &info) != 0 && info.dli_fname != nullptr) {
    std::error_code code;
    // A program that was found in PATH has no folder in its name.
    const bool has_folder = std::strchr(info.dli_fname, '/') != nullptr;
    const fs::path self =
        (has_folder ? fs::absolute(info.dli_fname, code) : fs::read_symlink("/proc/self/exe", code)).parent_path();
    for (const fs::path& folder : {self / "evaluator", self / "../lib/kgrpo/evaluator"}) {
      const std::string text = fs::weakly_canonical(folder, code).string();
      if (good(text)) return text;
    }
  }
  throw Error(KGRPO_ERROR_UNAVAILABLE,
              "the evaluator's helper programs (sandbox_launcher and others) are not where they should be; tried:" +
                  tried + "\nbuild the project, or set KGRPO_EVALUATOR_HELPERS to their folder");
}

}  // namespace kgrpo::evaluator
