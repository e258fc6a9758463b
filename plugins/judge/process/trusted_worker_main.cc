// kgrpo_trusted_worker: loads the libraries that trusted_source.cc makes of a problem's sources, and calls their
// functions. Started by trusted_call.cc, whose header has the messages. A call that crashes, exits or passes its limit
// ends this process.
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <unistd.h>

#include "judge/process/trusted_call.h"
#include "process/frames.h"

namespace {

using kgrpo::evaluator::TrustedLimits, kgrpo::evaluator::TrustedPlace, kgrpo::evaluator::kTrustedMemory,
    kgrpo::evaluator::kTrustedPage, kgrpo::evaluator::kTrustedLoadSeconds, kgrpo::evaluator::kCannotBeCalled;
using Parts = std::vector<std::string>;
using Function = void (*)(void** tensors, const double* reals, const int64_t* wholes,
                          void (*say)(const char*, unsigned long));

constexpr int kSocket = 3;
constexpr size_t kMostWords = 1000;
constexpr size_t kKeptLibraries = 64;

char* g_memory = nullptr;
size_t g_bytes = 0;
std::vector<TrustedPlace> g_places;
std::string g_words;

template <typename T>
std::vector<T> ValuesOf(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

// Tells which tensor's neighbouring page was accessed.
void OnFault(int number, siginfo_t* info, void*) {
  const auto at = static_cast<uint64_t>(static_cast<char*>(info->si_addr) - g_memory);
  for (size_t i = 0; i < g_places.size(); ++i) {
    if (at < g_places[i].begin || at >= g_places[i].end) continue;
    const uint64_t tensor = i + 1;
    std::memcpy(g_memory, &tensor, sizeof tensor);
    _exit(1);
  }
  std::signal(number, SIG_DFL);
  raise(number);
}

// The memory at its present size, the pages beside the tensors closed.
bool MapMemory(size_t bytes, const std::vector<TrustedPlace>& places) {
  const auto same = [](const TrustedPlace& a, const TrustedPlace& b) { return a.begin == b.begin && a.end == b.end; };
  const bool as_before =
      bytes == g_bytes && std::equal(places.begin(), places.end(), g_places.begin(), g_places.end(), same);
  g_places = places;  // the tensors may begin elsewhere between the same guards
  if (as_before) return true;
  if (bytes != g_bytes) {
    if (g_memory != nullptr) munmap(g_memory, g_bytes);
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, kTrustedMemory, 0);
    g_memory = memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
    g_bytes = memory == MAP_FAILED ? 0 : bytes;
  }
  bool done = g_memory != nullptr && mprotect(g_memory, g_bytes, PROT_READ | PROT_WRITE) == 0;
  for (const TrustedPlace& place : g_places) {
    if (!done || place.data == 0) continue;
    done = mprotect(g_memory + place.begin, kTrustedPage, PROT_NONE) == 0 &&
           mprotect(g_memory + place.end - kTrustedPage, kTrustedPage, PROT_NONE) == 0;
  }
  if (!done) g_places.clear();
  return done;
}

// The processor time from here on; SIGXCPU ends the process at its end.
void LimitProcessorTime(int64_t seconds) {
  struct rusage used = {};
  getrusage(RUSAGE_SELF, &used);
  struct rlimit limit = {};
  getrlimit(RLIMIT_CPU, &limit);
  limit.rlim_cur = static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec + 1 + seconds);
  setrlimit(RLIMIT_CPU, &limit);
}

void Say(const char* words, unsigned long bytes) {
  g_words.append(words, std::min<size_t>(bytes, kMostWords - g_words.size()));
}

void* Library(const std::string& path) {
  static std::map<std::string, void*> libraries;
  const auto found = libraries.find(path);
  if (found != libraries.end()) return found->second;
  if (libraries.size() >= kKeptLibraries) {
    for (const auto& [name, library] : libraries) dlclose(library);
    libraries.clear();
  }
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) libraries[path] = library;
  return library;
}

Parts Call(const Parts& request) {
  const TrustedLimits limits = ValuesOf<TrustedLimits>(request.at(6)).at(0);
  LimitProcessorTime(limits.processor_seconds);
  void* library = Library(request.at(1));
  void* symbol = library == nullptr ? nullptr : dlsym(library, request.at(2).c_str());
  if (symbol == nullptr) return {kCannotBeCalled + std::string(dlerror()), ""};
  const auto reals = ValuesOf<double>(request.at(4));
  const auto wholes = ValuesOf<int64_t>(request.at(5));
  if (!MapMemory(limits.memory_bytes, ValuesOf<TrustedPlace>(request.at(3))))
    return {std::string(kCannotBeCalled) + "no memory", ""};
  std::vector<void*> tensors;
  tensors.reserve(g_places.size());
  for (const TrustedPlace& place : g_places) tensors.push_back(place.data == 0 ? nullptr : g_memory + place.data);
  g_words.clear();
  try {
    reinterpret_cast<Function>(symbol)(tensors.data(), reals.data(), wholes.data(), &Say);
  } catch (...) {
    return {"threw an exception", ""};
  }
  return {"", g_words};
}

}  // namespace

int main() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_IGN);  // the host ends it by the socket
  const struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  struct sigaction fault = {};
  fault.sa_sigaction = OnFault;
  fault.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &fault, nullptr);
  sigaction(SIGBUS, &fault, nullptr);
  Parts request;
  while (kgrpo::process::ReadFrames(kSocket, &request, -1)) {
    const bool load = request.at(0) == "load";
    if (load) LimitProcessorTime(kTrustedLoadSeconds);
    const Parts answer = !load ? Call(request) : Parts{Library(request.at(1)) == nullptr ? dlerror() : ""};
    if (!kgrpo::process::WriteFrames(kSocket, answer)) break;
  }
  return 0;
}
