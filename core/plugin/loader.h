// From the name that a pipeline gives a plugin to the loaded library. Used by the commands; owns what it loaded.
#ifndef KGRPO_PLUGIN_LOADER_H
#define KGRPO_PLUGIN_LOADER_H

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <kgrpo/sdk/error.h>
#include "plugin/library.h"

namespace kgrpo {

// The folders that plugins are searched in, in this order: `given` (each --plugin-path; may hold several, separated by
// ":"), $KGRPO_PLUGIN_PATH (the same), <folder of this program>/../lib/kgrpo. Absolute, without repetitions; they need
// not exist.
std::vector<std::filesystem::path> PluginDirectories(const std::vector<std::string>& given);

class PluginLoader {
 public:
  explicit PluginLoader(std::vector<std::filesystem::path> directories) : directories_(std::move(directories)) {}

  // `plugin` is a path when it holds a "/" or ends in ".so"; else a name: NAME.so or libNAME.so in the first directory
  // that has one. Throws kgrpo::Error with every path tried and why it would not do. A library is opened once. [main
  // thread]
  const PluginLibrary& Load(const std::string& plugin);

  // Returns the error for a name without a library: every path tried, and the closest existing name. The build writes a
  // file shipped_plugins into a folder, one plugin name a line; a name that is in it was left out of this build. [main
  // thread]
  Error NotFound(const std::string& plugin) const;

  // Each *.so of the directories, in their order, then by name. A directory that does not exist has none.
  std::vector<std::filesystem::path> Scan() const;

  const std::vector<std::filesystem::path>& directories() const { return directories_; }

 private:
  const PluginLibrary& Open(const std::filesystem::path& path);  // throws the reason alone

  std::vector<std::filesystem::path> directories_;
  std::map<std::filesystem::path, std::unique_ptr<PluginLibrary>> opened_;
};

}  // namespace kgrpo
#endif
