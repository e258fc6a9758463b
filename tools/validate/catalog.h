// Lists the plugins: `kgrpo-host plugins list`.
#ifndef KGRPO_VALIDATE_CATALOG_H
#define KGRPO_VALIDATE_CATALOG_H

#include <filesystem>
#include <string>
#include <vector>

#include "plugin/loader.h"

namespace kgrpo {

struct PluginSummary {
  std::filesystem::path path;
  std::string name;  // the file's name if the plugin could not be queried
  std::string version;
  std::string summary;
  std::vector<std::string> roles;  // "reward", ...
  std::string error;               // why it cannot be used; empty when it can
};

// Returns every library in the loader's directories. A child process queries each, because a broken one may crash.
// [main thread, of a program with one thread]
std::vector<PluginSummary> ListPlugins(const PluginLoader& loader);

}  // namespace kgrpo
#endif
