// SPDX-License-Identifier: Apache-2.0
// kgrpo/sdk/plugin.h - the bootstrap of a plugin in one declaration. Included once by each plugin, in its plugin.cc:
//
//   KGRPO_PLUGIN("reward_speedup", "0.1.0", "speedup over the reference kernel",
//                {KGRPO_REWARD_INTERFACE, &kRewardInterface});
//
// Several {id, table} pairs may follow each other.
#ifndef KGRPO_SDK_PLUGIN_H
#define KGRPO_SDK_PLUGIN_H
#include <kgrpo/abi.h>
#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/host.h>
#include <kgrpo/sdk/text.h>

#include <string_view>

namespace kgrpo::sdk {

struct NamedInterface {
  const char* id;
  const void* table;
};

}  // namespace kgrpo::sdk

#define KGRPO_PLUGIN(plugin_name, plugin_version, plugin_summary, ...)                 \
  static const void* KgrpoGetInterface(kgrpo_str id) {                                 \
    static const kgrpo::sdk::NamedInterface kInterfaces[] = {__VA_ARGS__};             \
    for (const kgrpo::sdk::NamedInterface& entry : kInterfaces) {                      \
      if (kgrpo::View(id) == entry.id) return entry.table;                             \
    }                                                                                  \
    return nullptr;                                                                    \
  }                                                                                    \
  extern "C" KGRPO_EXPORT const kgrpo_plugin* kgrpo_plugin_entry(void) {               \
    static const kgrpo_plugin kPlugin = {sizeof(kgrpo_plugin),                         \
                                         KGRPO_ABI_MAJOR,                              \
                                         KGRPO_ABI_MINOR,                              \
                                         {plugin_name, sizeof(plugin_name) - 1},       \
                                         {plugin_version, sizeof(plugin_version) - 1}, \
                                         {plugin_summary, sizeof(plugin_summary) - 1}, \
                                         KgrpoGetInterface};                           \
    return &kPlugin;                                                                   \
  }                                                                                    \
  static_assert(sizeof(plugin_name) > 1, "a plugin has a name")

#endif
