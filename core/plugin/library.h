// One plugin library: opened, its bootstrap checked, its interface tables handed out. Never unloaded, since libraries
// that it brought (libtorch) do not survive that. Made by loader.h, and by `plugins validate` in a child process.
#ifndef KGRPO_PLUGIN_LIBRARY_H
#define KGRPO_PLUGIN_LIBRARY_H

#include <kgrpo/abi.h>
#include <kgrpo/collective.h>

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
  // Null where it carries no collective between ranks. No part of a pipeline: the host loads it where several ranks
  // were started.
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

// How every interface table begins, whatever the role.
struct InterfacePrefix {
  uint32_t struct_size;
  kgrpo_str (*options_schema)(void);
};

}  // namespace kgrpo
#endif
