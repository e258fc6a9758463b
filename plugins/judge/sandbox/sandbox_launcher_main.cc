// sandbox_launcher: sets limits and filters on itself, then becomes the program it is given. The last link of every
// sandboxed command line that sandbox.cc builds: inside bubblewrap's namespaces where those can be had, else alone.
//
//   sandbox_launcher [--cpu S] [--memory BYTES] [--data BYTES] [--file-size BYTES] [--processes N] [--files N]
//                    [--filter compiler|profiler] [--drop-user]
//                    [--scratch DIR [--write PATH]... [--read PATH]...] -- PROGRAM ARGUMENT...
//
// Exits with 125 (kLauncherFailed) and a line on standard error where something it was told to set cannot be had.
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "judge/sandbox/sandbox.h"  // kLauncherFailed
#include "judge/sandbox/seccomp_filter.h"

namespace {

constexpr unsigned kNobody = 65534;

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "sandbox_launcher: %s\n", what.c_str());
  std::exit(kgrpo::evaluator::kLauncherFailed);
}

[[noreturn]] void FailErrno(const std::string& what) { Fail(what + ": " + std::strerror(errno)); }

void Limit(__rlimit_resource resource, const char* name, rlim_t value) {
  struct rlimit current = {};
  getrlimit(resource, &current);
  const rlim_t bounded = current.rlim_max < value ? current.rlim_max : value;
  const struct rlimit wanted = {bounded, bounded};
  if (setrlimit(resource, &wanted) != 0) FailErrno(name);
}

// What a program may do with files. Each list holds files and folders; those that do not exist are left out.
struct FileRights {
  const char* scratch = nullptr;   // anything but execution; nothing is created, renamed or removed elsewhere. "": none
  std::vector<const char*> write;  // written to, or to files below
  std::vector<const char*> read;   // read and executed, as scratch and `write` are read; empty: reads are not limited
};

void Confine(const FileRights& rights) {
  constexpr uint64_t kTruncate = uint64_t{1} << 14;  // LANDLOCK_ACCESS_FS_TRUNCATE, from the third version on
  constexpr uint64_t kChanges =
      LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
      LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |
      LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;
  constexpr uint64_t kReads = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
  constexpr uint64_t kOfFiles =
      LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_EXECUTE | kTruncate;
  const long version = syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 1) FailErrno("landlock");
  const uint64_t write = LANDLOCK_ACCESS_FS_WRITE_FILE | (version >= 3 ? kTruncate : 0);
  struct landlock_ruleset_attr attributes = {};
  attributes.handled_access_fs = kChanges | write;
  if (!rights.read.empty()) attributes.handled_access_fs |= kReads | LANDLOCK_ACCESS_FS_EXECUTE;
  const int ruleset = static_cast<int>(syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0));
  if (ruleset < 0) FailErrno("landlock");
  const auto allow = [&](const char* path, uint64_t access, bool must_exist) {
    struct landlock_path_beneath_attr rule = {};
    rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
    if (rule.parent_fd < 0 && !must_exist && errno == ENOENT) return;
    if (rule.parent_fd < 0) FailErrno(path);
    struct stat status = {};
    if (fstat(rule.parent_fd, &status) != 0) FailErrno(path);
    rule.allowed_access = access & attributes.handled_access_fs & (S_ISDIR(status.st_mode) ? ~uint64_t{0} : kOfFiles);
    if (rule.allowed_access != 0 && syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0)
      FailErrno("landlock rule");
    close(rule.parent_fd);
  };
  if (*rights.scratch != '\0') allow(rights.scratch, kChanges | write | kReads, true);
  for (const char* path : rights.write) allow(path, write | kReads, true);
  for (const char* path : rights.read) allow(path, kReads | LANDLOCK_ACCESS_FS_EXECUTE, false);
  if (syscall(SYS_landlock_restrict_self, ruleset, 0) != 0) FailErrno("landlock");
  close(ruleset);
}

}  // namespace

int main(int argc, char** argv) {
  const char* filter = nullptr;
  FileRights rights;
  bool drop_user = false;
  rlim_t cpu = RLIM_INFINITY, memory = RLIM_INFINITY, data = RLIM_INFINITY, file_size = RLIM_INFINITY,
         processes = RLIM_INFINITY, files = 64;
  int i = 1;
  for (; i < argc && std::strcmp(argv[i], "--") != 0; ++i) {
    const std::string option = argv[i];
    if (option == "--drop-user") {
      drop_user = true;
      continue;
    }
    if (i + 1 >= argc) Fail("option " + option + " needs a value");
    const char* value = argv[++i];
    const auto number = static_cast<rlim_t>(std::strtoull(value, nullptr, 10));
    if (option == "--cpu") {
      cpu = number;
    } else if (option == "--memory") {
      memory = number;
    } else if (option == "--data") {
      data = number;
    } else if (option == "--file-size") {
      file_size = number;
    } else if (option == "--processes") {
      processes = number;
    } else if (option == "--files") {
      files = number;
    } else if (option == "--filter") {
      filter = value;
    } else if (option == "--scratch") {
      rights.scratch = value;
    } else if (option == "--write") {
      rights.write.push_back(value);
    } else if (option == "--read") {
      rights.read.push_back(value);
    } else {
      Fail("unknown option " + option);
    }
  }
  if (i + 1 >= argc) Fail("no program given");
  char** program = argv + i + 1;

  // Drops capabilities from the bounding set before the change of user, which takes away the right to do so.
  if (drop_user && geteuid() == 0) {
    for (unsigned long capability = 0; capability < 64; ++capability) {
      if (capability != CAP_SETUID && capability != CAP_SETGID) prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
    }
    if (setgroups(0, nullptr) != 0 || setresgid(kNobody, kNobody, kNobody) != 0 ||
        setresuid(kNobody, kNobody, kNobody) != 0) {
      FailErrno("cannot change to the user nobody");
    }
  }
  // Nothing started from here may have capabilities, whoever owns it. After --drop-user the rest of the set cannot be
  // dropped any more; PR_SET_NO_NEW_PRIVS below has the same effect.
  for (unsigned long capability = 0; capability < 64; ++capability) prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
  Limit(RLIMIT_CORE, "core", 0);
  Limit(RLIMIT_NOFILE, "files", files);
  Limit(RLIMIT_STACK, "stack", rlim_t{64} << 20);
  if (cpu != RLIM_INFINITY) Limit(RLIMIT_CPU, "cpu", cpu);
  if (memory != RLIM_INFINITY) Limit(RLIMIT_AS, "memory", memory);
  if (data != RLIM_INFINITY) Limit(RLIMIT_DATA, "data", data);
  if (file_size != RLIM_INFINITY) Limit(RLIMIT_FSIZE, "file size", file_size);
  if (processes != RLIM_INFINITY) Limit(RLIMIT_NPROC, "processes", processes);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) FailErrno("no_new_privs");
  if (rights.scratch != nullptr) Confine(rights);
  if (filter != nullptr) {
    const bool sockets = std::strcmp(filter, "profiler") == 0;
    if (!sockets && std::strcmp(filter, "compiler") != 0) Fail("unknown filter " + std::string(filter));
    const std::string failure =
        sockets ? kgrpo::evaluator::InstallProfilerFilter() : kgrpo::evaluator::InstallCompilerFilter();
    if (!failure.empty()) Fail(failure);
  }
  execvp(program[0], program);
  FailErrno(std::string("cannot run ") + program[0]);
}
