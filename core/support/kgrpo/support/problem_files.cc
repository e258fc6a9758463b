#include <kgrpo/sdk/error.h>
#include <kgrpo/support/problem_files.h>
#include <kgrpo/support/sha256.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace kgrpo {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFiles = 16;
constexpr size_t kMostBytes = size_t{1} << 20;
constexpr size_t kLongestName = 64;

bool IsPlainName(const std::string& name) {
  return !name.empty() && name.size() <= kLongestName && name[0] != '.' && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  });
}

}  // namespace

ProblemFiles ReadProblemFiles(const std::string& directory) {
  if (!fs::is_directory(directory)) throw Error(KGRPO_ERROR_NOT_FOUND, "there is no problem folder " + directory);
  ProblemFiles files;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || name.starts_with('.')) continue;
    std::ifstream stream(entry.path(), std::ios::binary);
    std::string content((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    if (!stream) throw Error(KGRPO_ERROR_UNAVAILABLE, "cannot read " + entry.path().string());
    files.emplace(name, std::move(content));
  }
  return files;
}

std::string ProblemDigest(const ProblemFiles& files) {
  std::string digest;
  for (const auto& [name, content] : files) digest = Sha256OfParts({digest, name, content});
  return digest;
}

std::string WhyNotSendable(const ProblemFiles& files, bool code) {
  if (files.empty() || files.size() > kMostFiles)
    return "a problem is sent as 1 to " + std::to_string(kMostFiles) + " files, not " + std::to_string(files.size());
  size_t bytes = 0;
  for (const auto& [name, content] : files) {
    if (!IsPlainName(name)) return "\"" + name.substr(0, kLongestName) + "\" is no plain file name";
    if (!code && !name.ends_with(".yaml") && !name.ends_with(".cu"))
      return name +
             " may be native code that runs outside the sandbox; a service takes .yaml and .cu files alone, "
             "unless it is started with --inline-code";
    bytes += content.size();
  }
  if (bytes > kMostBytes) return "its files hold " + std::to_string(bytes) + " bytes, above 1 MiB";
  return "";
}

}  // namespace kgrpo
