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
  std::string name;  // the file's name if the plugin could not be queried
  std::string version;
  std::string summary;
  std::vector<std::string> roles;  // "reward", ...
  std::string error;               // why it cannot be used; empty when it can
};

// Returns every library in the loader's directories. A child process queries each, because loading a plugin may take a
// second; the answer is cached in `cache_file` (JSON) until the library's file changes. A cache that cannot be read or
// written is ignored; an empty path means no cache. [main thread, of a program with one thread]
std::vector<PluginSummary> ListPlugins(const PluginLoader& loader, const std::filesystem::path& cache_file);

}  // namespace kgrpo
#endif
