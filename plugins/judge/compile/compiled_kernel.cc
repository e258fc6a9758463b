#include "judge/compile/compiled_kernel.h"

#include <cxxabi.h>
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <iterator>
#include <sstream>

#include "judge/compile/fatbin.h"

namespace kgrpo::evaluator {
namespace {

constexpr size_t kLongestLine = 240;
constexpr size_t kLongestText = 1500;

std::string Between(const std::string& line, const std::string& before, char after) {
  const size_t begin = line.find(before);
  if (begin == std::string::npos) return "";
  const size_t start = begin + before.size();
  const size_t end = line.find(after, start);
  return line.substr(start, end == std::string::npos ? std::string::npos : end - start);
}

// The whole number that ends right before `unit`: IntegerBefore("16 bytes smem", " bytes smem") is 16.
int IntegerBefore(const std::string& line, const std::string& unit) {
  const size_t end = line.find(unit);
  if (end == std::string::npos) return 0;
  size_t begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  return begin == end || end - begin > 9 ? 0 : std::stoi(line.substr(begin, end - begin));
}

bool IsError(const std::string& line) {
  return line.find("error") != std::string::npos || line.find("fatal") != std::string::npos;
}

bool IsWarning(const std::string& line) {
  return line.find("warning") != std::string::npos || line.rfind("Remark", 0) == 0 ||
         line.find("ptxas info") != std::string::npos;
}

}  // namespace

std::map<std::string, KernelUsage> ParsePtxasUsage(const std::string& text) {
  std::map<std::string, KernelUsage> usage;
  std::istringstream lines(text);
  std::string line, entry, properties;
  while (std::getline(lines, line)) {
    if (const std::string name = Between(line, "Compiling entry function '", '\''); !name.empty()) {
      entry = name;
      usage[entry];
    } else if (const std::string of = Between(line, "Function properties for ", '\n'); !of.empty()) {
      properties = of;
    } else if (line.find("bytes stack frame") != std::string::npos) {
      // A called function's frame counts for the kernel that ptxas is at.
      const auto found = usage.find(usage.count(properties) > 0 ? properties : entry);
      if (found == usage.end()) continue;
      found->second.stack_bytes += IntegerBefore(line, " bytes stack frame");
      found->second.spill_store_bytes += IntegerBefore(line, " bytes spill stores");
      found->second.spill_load_bytes += IntegerBefore(line, " bytes spill loads");
    } else if (line.find(": Used ") != std::string::npos && usage.count(entry) > 0) {
      usage[entry].registers = IntegerBefore(line, " registers");
      usage[entry].static_shared_bytes = IntegerBefore(line, " bytes smem");
      usage[entry].stack_bytes =
          std::max(usage[entry].stack_bytes, IntegerBefore(line, " bytes cumulative stack size"));
    }
  }
  return usage;
}

void ReadConstantBytes(const std::string& cubin, std::map<std::string, KernelUsage>* usage) {
  constexpr char kSection[] = ".nv.constant";
  std::map<std::string, uint64_t> sizes;
  try {
    sizes = SectionSizes(cubin);
  } catch (const Error&) {
    return;
  }
  for (auto& [kernel, of_kernel] : *usage) of_kernel.constant_bytes = 0;
  for (const auto& [section, bytes] : sizes) {
    if (section.rfind(kSection, 0) != 0) continue;
    const size_t digits = sizeof kSection - 1, dot = section.find('.', digits);
    const std::string bank = section.substr(digits, dot == std::string::npos ? std::string::npos : dot - digits);
    if (bank == "0" || bank == "4")
      continue;  // the launch's own bank with the parameters; the linker's table of addresses
    for (auto& [kernel, of_kernel] : *usage) {
      if (dot == std::string::npos || section.substr(dot + 1) == kernel)
        of_kernel.constant_bytes += static_cast<int>(std::min<uint64_t>(bytes, 1 << 20));
    }
  }
}

std::string KernelName(const std::string& linker_name) {
  int status = 0;
  char* demangled = abi::__cxa_demangle(linker_name.c_str(), nullptr, nullptr, &status);
  std::string name = status == 0 ? demangled : linker_name;
  std::free(demangled);
  if (name.rfind("void ", 0) == 0) name = name.substr(5);
  const size_t parameters = name.rfind('(');
  return parameters == std::string::npos ? name : name.substr(0, parameters);
}

std::vector<std::pair<std::string, double>> UsageMetrics(const std::map<std::string, KernelUsage>& usage) {
  constexpr size_t kMostKernels = 8, kLongestName = 60;
  struct Figure {
    const char* name;
    double (*of)(const KernelUsage&);
  };
  static constexpr Figure kFigures[] = {
      {"registers", [](const KernelUsage& k) { return static_cast<double>(k.registers); }},
      {"spill_bytes",
       [](const KernelUsage& k) { return static_cast<double>(k.spill_store_bytes + k.spill_load_bytes); }},
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
