#include "common/output_file.h"

#include <kgrpo/sdk/error.h>

#include <filesystem>

namespace kgrpo::cli {

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
