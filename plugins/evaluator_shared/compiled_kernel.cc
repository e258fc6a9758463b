#include "evaluator_shared/compiled_kernel.h"

#include <cstdio>
#include <sstream>

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
    }
  }
  return usage;
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
