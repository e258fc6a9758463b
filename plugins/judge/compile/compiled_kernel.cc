#include "judge/compile/compiled_kernel.h"

#include <kgrpo/support/demangle.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <sstream>

namespace kgrpo::evaluator {
namespace {

constexpr size_t kLongestLine = 240;
constexpr size_t kLongestText = 1500;

bool IsError(const std::string& line) {
  return line.find("error") != std::string::npos || line.find("fatal") != std::string::npos;
}

bool IsWarning(const std::string& line) {
  return line.find("warning") != std::string::npos || line.rfind("Remark", 0) == 0 ||
         line.find("ptxas info") != std::string::npos;
}

}  // namespace

Trouble CheckVariables(uint64_t bytes, bool device_malloc) {
  const std::string sentence = "Its __device__ variables take " + std::to_string(bytes) + " bytes; ";
  if (bytes > kMostVariableBytes)
    return {"out_of_memory", sentence + "at most " + std::to_string(kMostVariableBytes) + " are available."};
  if (bytes <= kMostWithoutMalloc || device_malloc) return {};
  return {"forbidden", sentence + "this problem allows no device memory but its tensors, and " +
                           std::to_string(kMostWithoutMalloc) + " bytes of variables."};
}

std::string KernelName(const std::string& linker_name) {
  constexpr size_t kLongest = 400;  // a candidate chose it
  std::string name = Demangled(linker_name);
  if (name.empty()) name = linker_name;
  if (name.rfind("void ", 0) == 0) name = name.substr(5);
  return name.substr(0, std::min(name.rfind('('), kLongest));
}

std::vector<std::pair<std::string, double>> UsageMetrics(const std::map<std::string, KernelUsage>& usage) {
  constexpr size_t kMostKernels = 8, kLongestName = 60;
  struct Figure {
    const char* name;
    double (*of)(const KernelUsage&);
  };
  static constexpr Figure kFigures[] = {
      {"registers", [](const KernelUsage& k) { return static_cast<double>(k.registers); }},
      {"spill_bytes", [](const KernelUsage& k) { return static_cast<double>(k.spill_bytes); }},
      {"static_shared_bytes", [](const KernelUsage& k) { return static_cast<double>(k.static_shared_bytes); }},
      {"stack_bytes", [](const KernelUsage& k) { return static_cast<double>(k.stack_bytes); }},
      {"constant_bytes", [](const KernelUsage& k) { return static_cast<double>(k.constant_bytes); }}};
  std::vector<std::pair<std::string, double>> metrics;
  for (const Figure& figure : kFigures) {
    double most = 0;
    for (const auto& [kernel, of_kernel] : usage) most = std::max(most, figure.of(of_kernel));
    metrics.emplace_back(figure.name, most);
  }
  if (usage.size() < 2) return metrics;
  std::map<std::string, int> told;  // overloads and long names may look the same
  size_t count = 0;
  for (const auto& [kernel, of_kernel] : usage) {
    if (++count > kMostKernels) break;
    std::string name = KernelName(kernel).substr(0, kLongestName);
    std::replace_if(
        name.begin(), name.end(), [](char c) { return c < 0x20 || c >= 0x7f; }, '?');  // a candidate chose it
    if (const int times = ++told[name]; times > 1) name += " #" + std::to_string(times);
    for (const Figure& figure : kFigures)
      metrics.emplace_back(std::string(figure.name) + " of " + name, figure.of(of_kernel));
  }
  return metrics;
}

bool FailedForTheMoment(const std::string& output) {
  static const char* const kSigns[] = {"died due to signal",      "Killed signal terminated program",
                                       "No space left on device", "virtual memory exhausted",
                                       "Cannot allocate memory",  "out of memory",
                                       "std::bad_alloc",          "Resource temporarily unavailable",
                                       "Too many open files",     "Memory allocation failure"};
  return std::any_of(std::begin(kSigns), std::end(kSigns),
                     [&output](const char* sign) { return output.find(sign) != std::string::npos; });
}

std::string QuoteCompilerOutput(const std::string& output, const std::string& scratch) {
  std::string text = output;
  for (size_t at = text.find(scratch + "/"); !scratch.empty() && at != std::string::npos;
       at = text.find(scratch + "/", at)) {
    text.erase(at, scratch.size() + 1);
  }
  std::istringstream lines(text);
  std::string line, quoted;
  int errors = 0;
  bool within_warning = false;
  while (std::getline(lines, line)) {
    std::string clean;
    for (char c : line) {
      if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) clean += c;
      if (c == '\t') clean += ' ';
    }
    if (clean.find_first_not_of(' ') == std::string::npos) continue;
    const bool error = IsError(clean);
    if (!error && IsWarning(clean)) within_warning = true;
    if (error) within_warning = false;
    if (within_warning) continue;
    if (error && ++errors > 5) break;
    if (clean.size() > kLongestLine) clean = clean.substr(0, kLongestLine) + "...";
    if (quoted.size() + clean.size() > kLongestText) break;
    quoted += "\n| " + clean;
  }
  return quoted;
}

}  // namespace kgrpo::evaluator
