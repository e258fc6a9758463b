// The plugin coder_engine: kgrpo.coder/1 over the Coder of coder.h. Only translation between C and C++ happens here.
#include <kgrpo/coder.h>
#include <kgrpo/sdk/plugin.h>

#include "coder_engine/coder.h"
#include "coder_engine/options.h"
#include "coder_shared/request.h"
#include "policy_qwen/hosted_policy.h"

struct kgrpo_coder {
  kgrpo::coder_engine::Coder coder;
};

namespace kgrpo::coder_engine {
namespace {

kgrpo_str Schema() { return Str(OptionsSchema()); }

kgrpo_error* Create(const kgrpo_host* host, kgrpo_str options, kgrpo_coder** out) {
  return policy::GuardLibtorch([&] { *out = new kgrpo_coder{{host, ReadOptions(View(options))}}; });
}

void Destroy(kgrpo_coder* self) { delete self; }

kgrpo_error* Implement(kgrpo_coder* self, const kgrpo_coder_request* request, kgrpo_coder_done done) {
  return Guard([&] {
    coder_shared::RequireWhole(request, done, "coder_engine");
    self->coder.Implement(*request, done);
  });
}

void Cancel(kgrpo_coder* self) { self->coder.Cancel(); }

kgrpo_error* DescribeRequest(const kgrpo_coder* self, const kgrpo_coder_request* request, kgrpo_text_sink sink) {
  return Guard([&] {
    coder_shared::RequireWhole(request, "coder_engine");
    const std::string text = self->coder.PromptText(*request);
    sink.put(sink.context, Str(text));
  });
}

kgrpo_error* Describe(const kgrpo_coder* self, kgrpo_text_sink sink) {
  return Guard([&] {
    const std::string text = self->coder.Describe();
    sink.put(sink.context, Str(text));
  });
}

constexpr kgrpo_coder_interface kInterface = {
    sizeof(kgrpo_coder_interface), Schema,          Create,   Destroy, Implement, Cancel,
    /*suggestions=*/nullptr,       DescribeRequest, Describe,
    /*spending=*/nullptr,
    /*get_extension=*/nullptr,
};

}  // namespace
}  // namespace kgrpo::coder_engine

KGRPO_PLUGIN("coder_engine", KGRPO_VERSION, "a second model, in the same process as the policy, writes the kernels",
             {KGRPO_CODER_INTERFACE, &kgrpo::coder_engine::kInterface});
