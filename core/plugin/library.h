// One plugin library: opened, its bootstrap checked, its interface tables handed out. Never unloaded, because libraries
// that it depends on (libtorch) do not survive unloading. Made by loader.h, and by `plugins validate` in a child
// process.
#ifndef KGRPO_PLUGIN_LIBRARY_H
#define KGRPO_PLUGIN_LIBRARY_H

#include <kgrpo/abi.h>
#include <kgrpo/draft/collective.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "base/role.h"

namespace kgrpo {

class PluginLibrary {
 public:
  // Opens the library (RTLD_NOW, RTLD_LOCAL), calls its entry and checks what it says. Throws kgrpo::Error whose
  // message is the reason alone: "no such file", "undefined symbol: ...", "built for plugin ABI 2, this host has 1".
  // [main thread]
  explicit PluginLibrary(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::string name() const;
  std::string version() const;
  std::string summary() const;
  const kgrpo_plugin& bootstrap() const { return *plugin_; }

  bool Plays(Role role) const;
  // The transport's table; null if the library has none. Not a part of a pipeline: the host loads a transport if
  // several ranks were started.
  const kgrpo_transport_interface* transport() const;

  // The table of the role's interface, at least as large as first released. Throws kgrpo::Error, naming what the plugin
  // does offer, when it has none. `T` is the role's table type.
  template <typename T>
  const T* Table(Role role) const {
    return static_cast<const T*>(CheckedTable(role));
  }

  // The options schema of the role's interface. Throws kgrpo::Error when it is not JSON.
  nlohmann::ordered_json OptionsSchema(Role role) const;

 private:
  const void* CheckedTable(Role role) const;

  std::filesystem::path path_;
  const kgrpo_plugin* plugin_ = nullptr;
};

// The common beginning of all interface tables.
struct InterfacePrefix {
  uint32_t struct_size;
  kgrpo_str (*options_schema)(void);
};

}  // namespace kgrpo
#endif
