#include "plugin/transport.h"

#include <kgrpo/sdk/collective.h>
#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

#include <nlohmann/json.hpp>

namespace kgrpo {

Transport::Transport(const PluginLibrary& library, const kgrpo_host* host, const Launch& launch, double patience)
    : api_(library.transport()) {
  if (api_ == nullptr || api_->struct_size < KGRPO_TRANSPORT_INTERFACE_SIZE_1) {
    throw Error(KGRPO_ERROR_UNSUPPORTED, "plugin \"" + library.name() + "\" (" + library.path().string() +
                                             ") offers no " KGRPO_TRANSPORT_INTERFACE);
  }
  plugin_ = PluginOfTable(api_->collective, library.name());
  const std::string options = nlohmann::json{
      {"rank", launch.rank},
      {"size", launch.size},
      {"local_rank", launch.local_rank},
      {"local_size", launch.local_size},
      {"address", launch.address},
      {"port", launch.port},
      {"hosted", launch.hosted},
      {"run", launch.run},
      {"patience", patience}}.dump();
  Check(api_->create(host, Str(options), &raw_));
}

Transport::~Transport() { api_->destroy(raw_); }

std::string Transport::Broadcast(std::string bytes, uint32_t root) {
  const PluginCall call(plugin_, "collective");
  auto size = static_cast<double>(bytes.size());  // exact up to 2^53
  Check(collective()->broadcast(context(), ArrayTensor(&size, 1).c(), root));
  bytes.resize(static_cast<size_t>(size));
  const ArrayTensor data(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size());
  Check(collective()->broadcast(context(), data.c(), root));
  return bytes;
}

void Transport::Put(const std::string& key, const std::string& value) { Check(api_->put(raw_, Str(key), Str(value))); }

std::optional<std::string> Transport::Get(const std::string& key) {
  std::string value;
  kgrpo_error* error =
      api_->get(raw_, Str(key),
                {&value, [](void* context, kgrpo_str text) { *static_cast<std::string*>(context) = Copy(text); }});
  if (error != nullptr && error->code == KGRPO_ERROR_NOT_FOUND) {
    error->release(error);
    return std::nullopt;
  }
  Check(error);
  return value;
}

}  // namespace kgrpo
