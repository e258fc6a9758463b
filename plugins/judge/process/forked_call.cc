#include "judge/process/forked_call.h"

#include <fcntl.h>
#include <kgrpo/sdk/error.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "process/subprocess.h"  // MakePipe

namespace kgrpo::evaluator {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kReturned = 100, kThrew = 101, kOutOfBounds = 102;  // exit codes of the copy
constexpr double kWall = 5;                                       // of processor time, on a busy machine
constexpr size_t kMostWords = 1000;
constexpr size_t kPage = 4096;

// All SharedBytes by their first page, for the handler of a copy, which is one thread's.
struct Known {
  size_t mapped;
  const std::string* name;
};
std::mutex g_mutex;
std::map<const char*, Known>& Blocks() {
  static std::map<const char*, Known> blocks;
  return blocks;
}

void Write(const char* words, size_t bytes) {
  for (ssize_t count = 0; bytes > 0 && (count = write(kCallWords, words, bytes)) > 0; words += count)
    bytes -= static_cast<size_t>(count);
}

// In the copy: names the tensor whose guard page was accessed.
void OnFault(int number, siginfo_t* info, void*) {
  const auto* address = static_cast<const char*>(info->si_addr);
  auto next = Blocks().upper_bound(address);
  if (next != Blocks().begin() && address < (--next)->first + next->second.mapped) {
    Write(next->second.name->data(), next->second.name->size());
    _exit(kOutOfBounds);
  }
  std::signal(number, SIG_DFL);
  raise(number);
}

// `returned`: shared with the process that waits; set once the body has returned, since the body may call _exit with
// any code.
[[noreturn]] void RunCopy(int words, int processor_seconds, const std::function<void()>& body, bool* returned) {
  // Keeps no other descriptor: a copy of another thread's pipe would delay that pipe's end.
  dup2(words, kCallWords);
  closefrom(kCallWords + 1);
  // This process's output is for results, and whoever reads it may not read on.
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  dup2(nothing, STDOUT_FILENO);
  for (const int signal : {SIGABRT, SIGFPE, SIGILL, SIGXCPU, SIGTERM, SIGINT, SIGHUP}) std::signal(signal, SIG_DFL);
  struct sigaction fault = {};
  fault.sa_sigaction = OnFault;
  fault.sa_flags = SA_SIGINFO | SA_RESETHAND;
  sigaction(SIGSEGV, &fault, nullptr);
  sigaction(SIGBUS, &fault, nullptr);
  // SIGXCPU comes at the first limit, SIGKILL at the second.
  const auto seconds = static_cast<rlim_t>(processor_seconds);
  const struct rlimit limit = {seconds, seconds + 1}, none = {0, 0};
  setrlimit(RLIMIT_CPU, &limit);
  setrlimit(RLIMIT_CORE, &none);
  try {
    body();
  } catch (...) {
    _exit(kThrew);
  }
  *returned = true;
  _exit(kReturned);
}

}  // namespace

CallEnd CallInCopy(const std::string& file, int processor_seconds, const std::function<void()>& body) {
  auto [reader, writer] = process::MakePipe();
  const auto unmap = [](void* page) { munmap(page, sizeof(bool)); };
  void* page = mmap(nullptr, sizeof(bool), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw Error(KGRPO_ERROR_UNAVAILABLE, file + ": no memory for a process of its own");
  const std::unique_ptr<void, decltype(unmap)> returned(page, unmap);
  pid_t copy;
  {
    const std::lock_guard<std::mutex> lock(g_mutex);  // so that the copy sees Blocks() whole
    copy = fork();
  }
  if (copy < 0)
    throw Error(KGRPO_ERROR_UNAVAILABLE, file + ": cannot be run in a process of its own: " + std::strerror(errno));
  if (copy == 0) RunCopy(writer.get(), processor_seconds, body, static_cast<bool*>(page));
  writer.Close();
  const Clock::time_point deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                        std::chrono::duration<double>(kWall * processor_seconds));
  CallEnd end;
  bool late = false;
  for (char part[512];;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    struct pollfd wait = {reader.get(), POLLIN, 0};
    const int ready = left.count() <= 0 ? 0 : poll(&wait, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    late = ready <= 0;
    const ssize_t count = late ? 0 : read(reader.get(), part, sizeof part);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    end.words.append(part, std::min(static_cast<size_t>(count), kMostWords - end.words.size()));
  }
  reader.Close();
  if (late) kill(copy, SIGKILL);
  int status = 0;
  while (waitpid(copy, &status, 0) < 0 && errno == EINTR) {
  }
  if (late || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU))
    end.failure = "did not finish";
  else if (WIFSIGNALED(status))
    end.failure = std::string("crashed (") + strsignal(WTERMSIG(status)) + ")";
  else if (WEXITSTATUS(status) == kThrew)
    end.failure = "threw an exception";
  else if (WEXITSTATUS(status) == kOutOfBounds)
    end.failure = "accesses " + std::exchange(end.words, "") + " out of its bounds";
  else if (WEXITSTATUS(status) != kReturned || !*static_cast<bool*>(page))
    end.failure = "called exit";
  return end;
}

SharedBytes::SharedBytes(std::string name, size_t bytes, bool at_end) : bytes_(bytes), name_(std::move(name)) {
  const size_t inner = (bytes + kPage - 1) / kPage * kPage;
  mapped_ = inner + 2 * kPage;
  void* pages = mmap(nullptr, mapped_, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED || mprotect(static_cast<char*>(pages) + kPage, inner, PROT_READ | PROT_WRITE) != 0)
    throw Error(KGRPO_ERROR_UNAVAILABLE, "no memory for " + std::to_string(bytes) + " bytes of " + name_);
  pages_ = static_cast<char*>(pages);
  data_ = pages_ + kPage + (at_end ? inner - bytes : 0);
  const std::lock_guard<std::mutex> lock(g_mutex);
  Blocks()[pages_] = {mapped_, &name_};
}

SharedBytes::SharedBytes(SharedBytes&& other) noexcept
    : pages_(std::exchange(other.pages_, nullptr)),
      mapped_(other.mapped_),
      bytes_(other.bytes_),
      data_(other.data_),
      name_(std::move(other.name_)) {
  const std::lock_guard<std::mutex> lock(g_mutex);
  if (pages_ != nullptr) Blocks()[pages_].name = &name_;
}

SharedBytes::~SharedBytes() {
  if (pages_ == nullptr) return;
  const std::lock_guard<std::mutex> lock(g_mutex);
  Blocks().erase(pages_);
  munmap(pages_, mapped_);
}

}  // namespace kgrpo::evaluator
