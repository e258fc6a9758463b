// kgrpo_sim_worker: the process that runs one candidate's host code, inside the sandbox. It asks the evaluator for a
// shared object, loads it behind a system call filter, and calls its launch function on each command. It never holds a
// problem's data: device memory is the evaluator's. Started by worker_pool.cc as `kgrpo_sim_worker SCRATCH [nofilter]`.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "interpreter/client/connection.h"
#include "judge/sandbox/seccomp_filter.h"

namespace {

using namespace kgrpo::interpreter;

// Buffer for the evaluator's messages; pages that are never touched cost nothing.
constexpr size_t kLargestObject = size_t{64} << 20;
uint8_t g_payload[kLargestObject];

// Reports a refused system call to the evaluator and ends. Calls only write and _exit, since the interrupted code may
// hold any lock.
void OnForbidden(int, siginfo_t* info, void*) {
  const Request request = {
      static_cast<uint32_t>(Operation::kForbidden), 0, static_cast<uint64_t>(info->si_syscall), 0, 0, 0};
  if (write(kSocket, &request, sizeof request) < 0) _exit(122);
  _exit(121);
}

Reply Ask(Operation operation, uint64_t a, const std::string& text) {
  const Request request = {static_cast<uint32_t>(operation), 0, a, 0, 0, text.size()};
  return kgrpo_ask(request, text.data(), nullptr, 0, g_payload, sizeof g_payload);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string scratch = argc > 1 ? argv[1] : "/tmp";
  const bool filtered = argc <= 2 || std::strcmp(argv[2], "nofilter") != 0;
  Reply reply = Ask(Operation::kReady, 0, "");
  if (reply.value != static_cast<uint64_t>(Command::kLoad) || reply.payload_bytes > sizeof g_payload) return 123;

  const std::string path = scratch + "/candidate.so";
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0500);
  if (file < 0 || write(file, g_payload, reply.payload_bytes) != static_cast<ssize_t>(reply.payload_bytes)) {
    std::perror(path.c_str());
    return 124;
  }
  close(file);

  struct sigaction action = {};
  action.sa_sigaction = OnForbidden;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSYS, &action, nullptr);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (filtered) {
    const std::string failure = kgrpo::evaluator::InstallWorkerFilter();
    if (!failure.empty()) {
      std::fprintf(stderr, "%s\n", failure.c_str());
      return 125;
    }
  }

  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  const char* failure = library == nullptr ? dlerror() : nullptr;
  using Call = void (*)(void**);
  const auto call = library == nullptr ? nullptr : reinterpret_cast<Call>(dlsym(library, "kgrpo_call"));
  std::string words = failure != nullptr ? failure : call == nullptr ? "the entry function is missing" : "";
  reply = Ask(Operation::kLoaded, words.empty() ? 0 : 1, words);
  while (call != nullptr && reply.value == static_cast<uint64_t>(Command::kCall)) {
    std::vector<CallArgument> arguments(reply.payload_bytes / sizeof(CallArgument));
    std::memcpy(arguments.data(), g_payload, arguments.size() * sizeof(CallArgument));
    std::vector<void*> pointers;
    pointers.reserve(pointers.size() + arguments.size());
    for (CallArgument& argument : arguments) pointers.push_back(&argument);
    call(pointers.data());
    reply = Ask(Operation::kReturned, 0, "");
  }
  _exit(0);
}
