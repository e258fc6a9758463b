// Lists the plugins: `kgrpo-host plugins list`.
#ifndef KGRPO_PLUGIN_CATALOG_H
#define KGRPO_PLUGIN_CATALOG_H

#include <filesystem>
#include <string>
#include <vector>

#include "plugin/loader.h"

namespace kgrpo {

struct PluginSummary {
  std::filesystem::path path;
  std::string name;  // the file's, where the plugin could not be asked
  std::string version;
  std::string summary;
  std::vector<std::string> roles;  // "reward", ...
  std::string error;               // why it cannot be used; empty when it can
};

// Every library in the loader's directories. Each is asked in a child process, and its answer kept in `cache_file`
// (JSON) until the file changes, since loading a plugin may take a second. A cache that cannot be read or written is
// done without; an empty path means none. [main thread, of a program with one thread]
std::vector<PluginSummary> ListPlugins(const PluginLoader& loader, const std::filesystem::path& cache_file);

}  // namespace kgrpo
#endif
