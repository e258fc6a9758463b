// Where measurements keep what they compile once.
#ifndef KGRPO_TOOLS_COMMON_CACHE_FOLDER_H
#define KGRPO_TOOLS_COMMON_CACHE_FOLDER_H

#include <filesystem>
#include <string>

namespace kgrpo::bench {

// Returns the folder kgrpo-NAME for temporary files, and makes it if needed; several runs share it.
inline std::string CacheFolder(const std::string& name) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("kgrpo-" + name);
  std::filesystem::create_directories(folder);
  return folder.string();
}

}  // namespace kgrpo::bench

#endif
