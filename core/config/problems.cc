#include "config/problems.h"

#include <glob.h>
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

namespace kgrpo {
namespace {

std::string Normal(const std::string& path) {
  std::string normal = std::filesystem::path(path).lexically_normal().string();
  while (normal.size() > 1 && normal.back() == '/') normal.pop_back();
  return normal;
}

}  // namespace

bool IsPattern(const std::string& text) { return text.find_first_of("*?[") != std::string::npos; }

std::vector<std::string> ExpandFolders(const std::string& pattern) {
  std::vector<std::string> folders;
  std::error_code error;
  if (!IsPattern(pattern)) {
    if (std::filesystem::is_directory(pattern, error)) folders.push_back(Normal(pattern));
    return folders;
  }
  glob_t matches = {};
  // A folder that is not there matches nothing; one that cannot be read is a mistake.
  const auto give_up = [](const char*, int reason) { return reason == ENOENT || reason == ENOTDIR ? 0 : 1; };
  const int result = glob(pattern.c_str(), GLOB_NOSORT, give_up, &matches);
  const std::unique_ptr<glob_t, void (*)(glob_t*)> owner(&matches, globfree);
  if (result != 0 && result != GLOB_NOMATCH) {
    throw Error(KGRPO_ERROR_UNAVAILABLE, std::string("a folder cannot be read: ") + std::strerror(errno));
  }
  for (size_t i = 0; i < matches.gl_pathc; ++i) {
    if (std::filesystem::is_directory(matches.gl_pathv[i], error)) folders.push_back(Normal(matches.gl_pathv[i]));
  }
  std::sort(folders.begin(), folders.end());
  folders.erase(std::unique(folders.begin(), folders.end()), folders.end());
  return folders;
}

bool HoldsProblemYaml(const std::string& folder) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::path(folder) / "problem.yaml", error);
}

std::vector<std::string> ProblemFolders(const std::string& given) {
  const std::vector<std::string> found = ExpandFolders(given);
  if (found.empty())
    throw Error(KGRPO_ERROR_NOT_FOUND, (IsPattern(given) ? "no folder matches " : "there is no folder ") + given);
  const bool any = std::any_of(found.begin(), found.end(), HoldsProblemYaml);
  std::vector<std::string> folders;
  for (const std::string& folder : found) {
    if (any && IsPattern(given) && !HoldsProblemYaml(folder)) continue;  // such as results/ beside the problems
    std::vector<std::string> inner;
    if (!HoldsProblemYaml(folder)) inner = ExpandFolders(folder + "/*");
    std::erase_if(inner, [](const std::string& one) { return !HoldsProblemYaml(one); });
    if (inner.empty()) inner = {folder};
    folders.insert(folders.end(), inner.begin(), inner.end());
  }
  std::sort(folders.begin(), folders.end());
  folders.erase(std::unique(folders.begin(), folders.end()), folders.end());
  return folders;
}

}  // namespace kgrpo
