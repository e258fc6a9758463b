#include "common/arguments.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/support/closest.h>

#include <filesystem>

#include "base/directories.h"  // FolderName, ShippedProblems
#include "config/problems.h"   // ExpandFolders, HoldsProblemYaml

namespace kgrpo::cli {

bool IsFolder(const std::string& given) {
  std::error_code code;  // ignored: an invalid path is not a folder
  return std::filesystem::is_directory(given, code);
}

std::string ProblemFolder(const std::string& given, const std::vector<std::string>& folders, const std::string& source,
                          ProblemArgument argument) {
  if (IsFolder(given)) {
    std::string folder = given;
    while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
    return folder;
  }
  const std::string named = argument == ProblemArgument::kOption ? "--problem " + given : "\"" + given + "\"";
  std::error_code code;
  if (std::filesystem::is_regular_file(given, code)) {
    const std::string folder = std::filesystem::path(given).parent_path().string();
    throw Error(KGRPO_ERROR_INVALID, named + " is a file: name its folder, " + (folder.empty() ? "." : folder));
  }
  std::vector<std::string> names;
  for (const std::string& folder : folders) {
    names.push_back(FolderName(folder));
    if (names.back() == given) return folder;
  }
  const std::string list = JoinedText(names);
  const std::filesystem::path parent = std::filesystem::path(given).parent_path();
  for (const auto& entry : std::filesystem::directory_iterator(parent.empty() ? "." : parent, code)) {
    if (HoldsProblemYaml(entry.path().string()))  // one of the user's own, misspelt
      names.push_back((parent / entry.path().filename()).string());
  }
  const std::string closest = Closest(given, names);
  const char* no_file = argument == ProblemArgument::kOption ? "" : "a file, ";
  throw Error(KGRPO_ERROR_INVALID, named + " is neither " + no_file + "a folder nor a problem of " + source +
                                       (!closest.empty() ? "; did you mean \"" + closest + "\"?"
                                        : list.empty()   ? "; it has none"
                                                         : "; it has: " + list));
}

std::string ShippedProblem(const std::string& given, ProblemArgument argument) {
  const std::string shipped = ShippedProblems().string();
  return ProblemFolder(given, ExpandFolders(shipped + "/*"), shipped + "/", argument);
}

std::string PipelineProblem(const std::string& given, const std::string& file, const PipelineConfig& config) {
  if (file.empty()) return ShippedProblem(given, ProblemArgument::kOption);
  std::vector<std::string> folders = config.train_problems;
  folders.insert(folders.end(), config.heldout_problems.begin(), config.heldout_problems.end());
  return ProblemFolder(given, folders, file, ProblemArgument::kOption);
}

void RequireWritable(const std::string& option, const std::string& file, const std::string& example) {
  const std::filesystem::path path(file);
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if (std::filesystem::is_directory(path))
    throw Error(KGRPO_ERROR_INVALID, option + " " + file + " is a folder: name a file, such as " +
                                         (path / example).lexically_normal().string());
  if (!std::filesystem::is_directory(folder))
    throw Error(KGRPO_ERROR_NOT_FOUND,
                option + " " + file + ": there is no folder " + folder.string() + "; make it first");
}

void RequireEmpty(const std::string& option, const std::filesystem::path& folder) {
  std::error_code code;
  if (!std::filesystem::exists(folder, code)) return;
  const bool is_folder = std::filesystem::is_directory(folder, code);
  if (is_folder && std::filesystem::is_empty(folder, code)) return;
  throw Error(KGRPO_ERROR_INVALID, folder.string() + (is_folder ? " is not empty" : " is not a folder") +
                                       ": choose another " + option + ", or delete it");
}

}  // namespace kgrpo::cli
