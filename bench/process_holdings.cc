#include "process_holdings.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace kgrpo::bench {
namespace {

namespace fs = std::filesystem;

double CountEntries(const fs::path& folder) {
  std::error_code error;
  double count = 0;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) ++count;
  return count;
}

struct Process {
  long parent = 0;
  char state = '?';
};

// All processes, by id. A process that ends during the listing is left out.
std::map<long, Process> Processes() {
  std::map<long, Process> processes;
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry->path() / "stat");
    std::string line;
    if (!std::getline(file, line)) continue;
    Process process;
    const size_t after_name = line.rfind(')');  // the name itself may hold anything
    if (after_name == std::string::npos) continue;
    if (std::sscanf(line.c_str() + after_name + 1, " %c %ld", &process.state, &process.parent) != 2) continue;
    processes[std::strtol(name.c_str(), nullptr, 10)] = process;
  }
  return processes;
}

// The value of a line "Name:   123 kB" of /proc/self/status.
double Status(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(name + ":", 0) == 0) return std::strtod(line.c_str() + name.size() + 1, nullptr);
  }
  return 0;
}

struct Measure {
  const char* name;
  double Holdings::*value;
  double allowed;  // growth that is no leak: samples at other moments differ by that much
  double sign;     // -1: it leaks when it shrinks
};

constexpr Measure kMeasures[] = {
    {"open files", &Holdings::open_files, 2, 1},
    {"children", &Holdings::children, 2, 1},
    {"zombies", &Holdings::zombies, 1, 1},
    {"threads", &Holdings::threads, 1, 1},
    {"temporary files", &Holdings::temporary_files, 4, 1},
    {"resident MiB", &Holdings::rss_mib, 32, 1},
    {"device MiB", &Holdings::device_free_mib, 32, -1},
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

Holdings LookAtProcess() {
  Holdings holdings;
  holdings.open_files = CountEntries("/proc/self/fd") - 1;  // less the descriptor that reads the folder
  const std::map<long, Process> processes = Processes();
  const long self = ::getpid();
  for (const auto& [id, process] : processes) {
    auto above = processes.find(process.parent);
    long parent = process.parent;
    while (parent != self && above != processes.end() && above->second.parent != parent) {
      parent = above->second.parent;
      above = processes.find(parent);
    }
    if (parent != self) continue;
    ++holdings.children;
    if (process.state == 'Z') ++holdings.zombies;
  }
  holdings.threads = Status("Threads");
  holdings.temporary_files = CountEntries(fs::temp_directory_path());
  holdings.rss_mib = Status("VmRSS") / 1024;
  return holdings;
}

std::string Leaks(const std::vector<Holdings>& samples) {
  constexpr size_t kFewest = 7;
  if (samples.size() < kFewest) return "too few samples to tell (" + std::to_string(samples.size()) + " of 7)";
  const size_t third = (samples.size() - 1) / 3;
  std::string found;
  for (const Measure& measure : kMeasures) {
    std::vector<double> first, last;
    for (size_t i = 0; i < third; ++i) {
      first.push_back(samples[1 + i].*measure.value);
      last.push_back(samples[samples.size() - 1 - i].*measure.value);
    }
    const double growth = measure.sign * (Median(last) - Median(first));
    if (growth <= measure.allowed) continue;
    char text[96];
    std::snprintf(text, sizeof text, "%s%s %+.1f", found.empty() ? "" : ", ", measure.name, measure.sign * growth);
    found += text;
  }
  return found.empty() ? "none" : found;
}

}  // namespace kgrpo::bench
