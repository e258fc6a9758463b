// The plugin coder_offline: implements kgrpo.coder/1 by the offline coder of coder.h. Answers at once, on the caller's
// thread.
#include <kgrpo/coder.h>
#include <kgrpo/sdk/plugin.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "coder_offline/coder.h"
#include "coder_offline/techniques.h"
#include "coder_shared/request.h"

// No state is kept between requests: the kernel's schedule line holds the techniques applied before.
struct kgrpo_coder {};

namespace {

using kgrpo::Error;
using kgrpo::Guard;
using kgrpo::Str;
using kgrpo::View;

constexpr char kOptionsSchema[] = R"({
  "$schema": "http://json-schema.org/draft-07/schema#",
  "title": "coder_offline: applies optimisation techniques to kernels by rule, without a key or a network",
  "type": "object",
  "properties": {},
  "additionalProperties": false
})";

kgrpo_coder_outcome OutcomeOf(kgrpo::coder_offline::Status status) {
  switch (status) {
    case kgrpo::coder_offline::Status::kOk: return KGRPO_CODER_OK;
    case kgrpo::coder_offline::Status::kNotApplicable: return KGRPO_CODER_NOT_APPLICABLE;
    case kgrpo::coder_offline::Status::kUnclear: return KGRPO_CODER_UNCLEAR;
  }
  return KGRPO_CODER_FAILED;
}

kgrpo_str OptionsSchema() { return {kOptionsSchema, sizeof(kOptionsSchema) - 1}; }

kgrpo_error* Create(const kgrpo_host*, kgrpo_str options, kgrpo_coder** out) {
  return Guard([&] {
    const nlohmann::json json = nlohmann::json::parse(View(options), nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || !json.empty()) {
      throw Error(KGRPO_ERROR_INVALID, "coder_offline takes no options: pass an empty JSON object");
    }
    *out = new kgrpo_coder;
  });
}

void Destroy(kgrpo_coder* self) { delete self; }

kgrpo_error* Implement(kgrpo_coder*, const kgrpo_coder_request* request, kgrpo_coder_done done) {
  return Guard([&] {
    kgrpo::coder_shared::RequireWhole(request, done, "coder_offline");
    kgrpo::coder_shared::AnswerAtOnce(done, [request] {
      auto answer = kgrpo::coder_offline::Implement(View(request->code_b), View(request->suggestion));
      kgrpo::CoderAnswer given;
      given.outcome = OutcomeOf(answer.status);
      given.source = std::move(answer.source);
      given.summary = std::move(answer.summary);
      if (given.outcome != KGRPO_CODER_OK) given.message = std::move(answer.message);
      return given;
    });
  });
}

void Cancel(kgrpo_coder*) {}  // no request outlives its call

kgrpo_error* Suggestions(const kgrpo_coder*, kgrpo_text_sink sink) {
  return Guard([&] {
    for (const std::string& suggestion : kgrpo::coder_offline::Suggestions()) sink.put(sink.context, Str(suggestion));
  });
}

constexpr kgrpo_coder_interface kInterface = {
    sizeof(kgrpo_coder_interface),
    OptionsSchema,
    Create,
    Destroy,
    Implement,
    Cancel,
    Suggestions,
    nullptr,
    nullptr,
    nullptr,
    /*get_extension=*/nullptr,
};

}  // namespace

KGRPO_PLUGIN("coder_offline", KGRPO_VERSION, "applies optimisation techniques to kernels by rule: no key, no network",
             {KGRPO_CODER_INTERFACE, &kInterface});
