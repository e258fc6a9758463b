#include "cli/problem_choice.h"

#include <kgrpo/sdk/error.h>

#include <filesystem>

#include "config/diagnostic.h"  // Closest

namespace kgrpo::cli {
namespace {

// The last part of a folder's path, whether or not a slash follows.
std::string NameOf(const std::string& folder) {
  const std::filesystem::path path = std::filesystem::path(folder).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

}  // namespace

bool NamesFolder(const std::string& given) {
  std::error_code code;  // a name that can be no folder's is none
  return std::filesystem::is_directory(given, code);
}

std::string ProblemFolder(const std::string& given, const std::vector<std::string>& folders,
                          const std::string& source) {
  if (NamesFolder(given)) {
    std::string folder = given;
    while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
    return folder;
  }
  std::vector<std::string> names;
  std::string list;
  for (const std::string& folder : folders) {
    names.push_back(NameOf(folder));
    if (names.back() == given) return folder;
    list += (list.empty() ? "" : ", ") + names.back();
  }
  const std::string closest = Closest(given, names);
  throw Error(KGRPO_ERROR_INVALID, "--problem " + given + " is neither a folder nor a problem of " + source +
                                       (closest.empty() ? "" : "; did you mean \"" + closest + "\"?") +
                                       (list.empty() ? "; it has none" : "; it has: " + list));
}

}  // namespace kgrpo::cli
