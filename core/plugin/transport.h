// A connection to the other ranks of a run, as a C++ object over kgrpo.transport/1. Used by loop/ranks.h;
// base/services.h hands its collective to plugins.
#ifndef KGRPO_PLUGIN_TRANSPORT_H
#define KGRPO_PLUGIN_TRANSPORT_H

#include <kgrpo/draft/collective.h>

#include <optional>
#include <string>

#include "base/launch.h"
#include "base/plugin_calls.h"
#include "plugin/library.h"

namespace kgrpo {

// Methods throw kgrpo::Error; threads are those of kgrpo/draft/collective.h.
class Transport {
 public:
  // Returns once all ranks have come; waits `patience` seconds for them. `host` outlives this.
  Transport(const PluginLibrary& library, const kgrpo_host* host, const Launch& launch, double patience);
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  uint32_t rank() const { return collective()->info(context())->rank; }
  uint32_t size() const { return collective()->info(context())->size; }

  // The collective for plugins; its functions take context() as their first argument.
  const kgrpo_collective_interface* collective() const { return api_->collective; }
  void* context() const { return raw_; }
  const PluginName* plugin() const { return plugin_; }

  // The bytes of rank `root`, on every rank.
  std::string Broadcast(std::string bytes, uint32_t root);

  void Put(const std::string& key, const std::string& value);
  std::optional<std::string> Get(const std::string& key);

 private:
  const kgrpo_transport_interface* api_;
  const PluginName* plugin_ = nullptr;
  kgrpo_transport* raw_ = nullptr;
};

}  // namespace kgrpo
#endif
