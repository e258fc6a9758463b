#include "base/visible_gpus.h"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string_view>
#include <system_error>

namespace kgrpo {

std::vector<std::string> VisibleGpus(const char* variable, const std::filesystem::path& device_folder) {
  std::vector<std::string> gpus;
  if (variable != nullptr) {
    std::istringstream entries(variable);
    for (std::string entry; std::getline(entries, entry, ',') && !entry.empty() && entry != "-1";)
      gpus.push_back(entry);
    return gpus;
  }
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(device_folder, error)) {
    const std::string name = entry.path().filename().string();
    constexpr std::string_view kPrefix = "nvidia";
    const bool numbered =
        name.size() > kPrefix.size() && name.starts_with(kPrefix) &&
        std::all_of(name.begin() + kPrefix.size(), name.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    if (numbered) gpus.push_back(std::to_string(gpus.size()));
  }
  return gpus;
}

}  // namespace kgrpo
