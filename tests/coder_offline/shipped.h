// The shipped problems' starting kernels, for the tests of the offline coder.
#ifndef KGRPO_TESTS_CODER_OFFLINE_SHIPPED_H_
#define KGRPO_TESTS_CODER_OFFLINE_SHIPPED_H_

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace kgrpo::coder_offline {

inline std::string ReadText(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline std::string Reference(const std::string& problem) {
  return ReadText(std::filesystem::path(KGRPO_SOURCE_DIR) / "problems" / problem / "reference.cu");
}

inline std::vector<std::string> ShippedProblems() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(KGRPO_SOURCE_DIR) / "problems")) {
    if (std::filesystem::exists(entry.path() / "reference.cu")) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

inline std::string ScheduleLineOf(const std::string& source) {
  const size_t at = source.find("// schedule:");
  return at == std::string::npos ? "" : source.substr(at, source.find('\n', at) - at);
}

}  // namespace kgrpo::coder_offline

#endif  // KGRPO_TESTS_CODER_OFFLINE_SHIPPED_H_
