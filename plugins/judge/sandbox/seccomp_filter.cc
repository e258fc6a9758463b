#include "judge/sandbox/seccomp_filter.h"

#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>

namespace kgrpo::evaluator {
namespace {

// System calls that neither a compiler nor a candidate needs: other processes, mounts, keys, kernel features, sockets.
constexpr const char* kPrivileged =
    "ptrace process_vm_readv process_vm_writev process_madvise pidfd_getfd kcmp mount umount2 move_mount "
    "open_tree fsopen fsconfig fsmount fspick mount_setattr pivot_root chroot keyctl add_key request_key "
    "io_uring_setup io_uring_enter io_uring_register bpf perf_event_open userfaultfd kexec_load "
    "kexec_file_load init_module finit_module delete_module reboot swapon swapoff sethostname setdomainname "
    "acct settimeofday clock_settime clock_adjtime adjtimex syslog quotactl quotactl_fd iopl ioperm nfsservctl "
    "vhangup name_to_handle_at open_by_handle_at fanotify_init lookup_dcookie setns unshare personality socket "
    "socketpair connect bind listen accept accept4 modify_ldt mknod mknodat mbind migrate_pages move_pages "
    "set_mempolicy landlock_create_ruleset";

// Owns a filter under construction.
class Filter {
 public:
  explicit Filter(uint32_t default_action) : context_(seccomp_init(default_action)) {
    if (context_ == nullptr) failure_ = "seccomp_init failed";
    Note(seccomp_attr_set(context_, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS), "architectures");
    // Threads that are there already are bound too.
    Note(seccomp_attr_set(context_, SCMP_FLTATR_CTL_TSYNC, 1), "all threads");
  }
  ~Filter() { seccomp_release(context_); }
  Filter(const Filter&) = delete;
  Filter& operator=(const Filter&) = delete;

  // A call unknown to this architecture or library is skipped: it cannot be made here either.
  template <typename... Arguments>
  void Add(uint32_t action, const char* name, Arguments... arguments) {
    const int number = seccomp_syscall_resolve_name(name);
    if (number == __NR_SCMP_ERROR) return;
    Note(seccomp_rule_add(context_, action, number, sizeof...(arguments), arguments...), name);
  }

  // Adds the calls of `names`, separated by blanks, except those of `left_out`.
  void AddAll(uint32_t action, const std::string& names, const std::string& left_out = "") {
    std::istringstream words(names);
    for (std::string name; words >> name;) {
      if ((" " + left_out + " ").find(" " + name + " ") == std::string::npos) Add(action, name.c_str());
    }
  }

  std::string Install() {
    if (failure_.empty()) Note(seccomp_load(context_), "loading");
    return failure_;
  }

 private:
  void Note(int status, const char* what) {
    if (status < 0 && failure_.empty()) failure_ = std::string("seccomp: ") + what + ": " + std::strerror(-status);
  }
  scmp_filter_ctx context_;
  std::string failure_;
};

// System calls that a profiler needs to start, inspect and hear from a program; also named pipes, which ncu makes
// before it starts anything.
constexpr const char* kProfiling =
    "socket socketpair connect bind listen accept accept4 ptrace process_vm_readv process_vm_writev "
    "personality mknod mknodat";

std::string InstallDenying(bool profiling_too) {
  Filter filter(SCMP_ACT_ALLOW);
  const uint32_t deny = SCMP_ACT_ERRNO(EPERM);
  filter.AddAll(deny, kPrivileged, profiling_too ? "" : kProfiling);
  for (const unsigned device : {S_IFCHR, S_IFBLK}) {
    filter.Add(deny, "mknod", SCMP_A1(SCMP_CMP_MASKED_EQ, S_IFMT, device));
    filter.Add(deny, "mknodat", SCMP_A2(SCMP_CMP_MASKED_EQ, S_IFMT, device));
  }
  filter.Add(deny, "clone", SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_NEWUSER, CLONE_NEWUSER));
  filter.Add(SCMP_ACT_ERRNO(ENOSYS), "clone3");  // its flags are in memory, out of a filter's sight; glibc falls back
  filter.Add(deny, "ioctl", SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffu, TIOCSTI));
  return filter.Install();
}

}  // namespace

std::string InstallCompilerFilter() { return InstallDenying(true); }

std::string InstallProfilerFilter() { return InstallDenying(false); }

std::string InstallWorkerFilter() {
  Filter filter(SCMP_ACT_TRAP);
  filter.AddAll(SCMP_ACT_ALLOW,
                "read write readv writev pread64 lseek close fstat newfstatat stat lstat statx access "
                "faccessat faccessat2 readlink readlinkat getcwd getdents64 mmap mprotect munmap mremap "
                "madvise brk futex poll ppoll select pselect6 exit exit_group rt_sigaction rt_sigprocmask "
                "rt_sigreturn sigaltstack getpid gettid getppid getuid geteuid getgid getegid clock_gettime "
                "clock_getres gettimeofday time nanosleep clock_nanosleep sched_yield sched_getaffinity getcpu "
                "getrandom uname sysinfo getrlimit getrusage times set_robust_list rseq set_tid_address "
                "arch_prctl restart_syscall membarrier");
  constexpr int kWriting = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND;
  filter.Add(SCMP_ACT_ALLOW, "openat", SCMP_A2(SCMP_CMP_MASKED_EQ, kWriting, 0));
  filter.Add(SCMP_ACT_ALLOW, "open", SCMP_A1(SCMP_CMP_MASKED_EQ, kWriting, 0));
  filter.Add(SCMP_ACT_ERRNO(EACCES), "openat", SCMP_A2(SCMP_CMP_MASKED_EQ, O_WRONLY, O_WRONLY));
  filter.Add(SCMP_ACT_ERRNO(EACCES), "openat", SCMP_A2(SCMP_CMP_MASKED_EQ, O_RDWR, O_RDWR));
  filter.Add(SCMP_ACT_ERRNO(ENOTTY), "ioctl");
  filter.Add(SCMP_ACT_ERRNO(EPERM), "prlimit64");
  // abort() and raise() signal this very process.
  filter.Add(SCMP_ACT_ALLOW, "tgkill", SCMP_A0(SCMP_CMP_EQ, static_cast<scmp_datum_t>(getpid())));
  return filter.Install();
}

std::string InstallGpuWorkerFilter() {
  Filter filter(SCMP_ACT_ALLOW);
  filter.AddAll(SCMP_ACT_TRAP, kPrivileged);
  filter.AddAll(SCMP_ACT_TRAP,
                "fork vfork clone execve execveat socketpair sendto sendmsg recvfrom recvmsg kill tkill "
                "rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal pidfd_open setuid setgid setresuid "
                "setresgid setgroups capset chmod fchmod fchmodat chown fchown fchownat unlink unlinkat rename "
                "renameat renameat2 mkdir mkdirat rmdir link linkat symlink symlinkat truncate timer_create "
                "setitimer alarm inotify_init1 signalfd4 shmget shmat semget msgget mq_open");
  filter.Add(SCMP_ACT_ERRNO(ENOSYS), "clone3");  // as above: then clone is tried, and refused
  filter.Add(SCMP_ACT_ERRNO(EACCES), "openat", SCMP_A2(SCMP_CMP_MASKED_EQ, O_CREAT, O_CREAT));
  filter.Add(SCMP_ACT_ERRNO(EACCES), "open", SCMP_A1(SCMP_CMP_MASKED_EQ, O_CREAT, O_CREAT));
  filter.Add(SCMP_ACT_ERRNO(EACCES), "creat");
  // abort() and raise() signal this very process.
  filter.Add(SCMP_ACT_TRAP, "tgkill", SCMP_A0(SCMP_CMP_NE, static_cast<scmp_datum_t>(getpid())));
  return filter.Install();
}

std::string SystemCallName(int number) {
  char* name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);
  std::string text = name != nullptr ? name : std::to_string(number);
  std::free(name);
  return text;
}

}  // namespace kgrpo::evaluator
