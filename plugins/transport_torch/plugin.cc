// plugin.cc - transport_torch as kgrpo.transport/1.
#include <kgrpo/draft/collective.h>
#include <kgrpo/sdk/plugin.h>

#include <memory>
#include <string>

#include "transport_torch/torch_transport.h"

namespace kgrpo::transport {
namespace {

TorchTransport& Of(void* self) { return *static_cast<TorchTransport*>(self); }

const kgrpo_collective_interface kCollective = {
    sizeof(kgrpo_collective_interface),
    [](void* self) -> const kgrpo_rank_info* { return &Of(self).info(); },
    [](void* self, const kgrpo_tensor* values, uint32_t reduction) -> kgrpo_error* {
      return Guard([&] { Of(self).AllReduce(*values, static_cast<kgrpo_reduction>(reduction)); });
    },
    [](void* self, const kgrpo_tensor* values) -> kgrpo_error* {
      return Guard([&] { Of(self).ReduceScatter(*values); });
    },
    [](void* self, const kgrpo_tensor* values) -> kgrpo_error* { return Guard([&] { Of(self).AllGather(*values); }); },
    [](void* self, const kgrpo_tensor* values, uint32_t root) -> kgrpo_error* {
      return Guard([&] { Of(self).Broadcast(*values, root); });
    },
    [](void* self, const kgrpo_tensor* values, size_t begin, size_t end, void* stream) -> kgrpo_error* {
      return Guard([&] { Of(self).BeginReduceScatter(*values, begin, end, stream); });
    },
    [](void* self) -> kgrpo_error* { return Guard([&] { Of(self).FinishReductions(); }); }};

const kgrpo_transport_interface kTransport = {
    sizeof(kgrpo_transport_interface),
    []() -> kgrpo_str { return Str(OptionsSchema()); },
    [](const kgrpo_host*, kgrpo_str options, kgrpo_transport** out) -> kgrpo_error* {
      return Guard([&] {
        *out =
            reinterpret_cast<kgrpo_transport*>(std::make_unique<TorchTransport>(ReadOptions(Copy(options))).release());
      });
    },
    [](kgrpo_transport* self) { delete reinterpret_cast<TorchTransport*>(self); },
    &kCollective,
    [](kgrpo_transport* self, kgrpo_str key, kgrpo_str value) -> kgrpo_error* {
      return Guard([&] { Of(self).Put(Copy(key), Copy(value)); });
    },
    [](kgrpo_transport* self, kgrpo_str key, kgrpo_text_sink out) -> kgrpo_error* {
      return Guard([&] {
        const std::optional<std::string> value = Of(self).Get(Copy(key));
        if (!value) throw Error(KGRPO_ERROR_NOT_FOUND, "nobody has put " + Copy(key));
        out.put(out.context, Str(*value));
      });
    }};

}  // namespace
}  // namespace kgrpo::transport

KGRPO_PLUGIN("transport_torch", KGRPO_VERSION, "several ranks of one run, by libtorch's c10d",
             {KGRPO_TRANSPORT_INTERFACE, &kgrpo::transport::kTransport});
