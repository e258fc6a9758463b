#include "calibrate/device_file.h"

#include <kgrpo/sdk/error.h>

#include <cstdio>
#include <sstream>

namespace kgrpo::bench {
namespace {

constexpr int kCommentColumn = 42;

}  // namespace

std::string WithValues(const std::string& text, const std::map<std::string, NewValue>& values) {
  std::istringstream lines(text);
  std::string result;
  std::map<std::string, NewValue> left = values;
  for (std::string line; std::getline(lines, line);) {
    const auto found = left.find(line.substr(0, line.find(':')));
    if (found != left.end()) {
      char start[120];
      std::snprintf(start, sizeof start, "%s: %.4g", found->first.c_str(), found->second.value);
      std::string replaced = start;
      replaced.resize(std::max<size_t>(replaced.size() + 1, kCommentColumn), ' ');
      line = replaced + "# " + found->second.source;
      left.erase(found);
    }
    result += line + "\n";
  }
  if (!left.empty())
    throw Error(KGRPO_ERROR_INVALID, "the device's file has no field '" + left.begin()->first + "' to replace");
  return result;
}

}  // namespace kgrpo::bench
