// coder_launch_bounds - a coder of one rule: carries out "launch bounds", which tells the compiler how many threads a
// block has at most, and so how many registers each may use. The whole of a plugin: options, the interface, the
// bootstrap.
#include <kgrpo/coder.h>
#include <kgrpo/sdk/plugin.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <string>

// The instance: what create makes and the other functions get back.
struct kgrpo_coder {
  int threads;
};

namespace {

constexpr const char* kSuggestion = "launch bounds";

// The schema of `options:`. The host checks the pipeline against it and fills the defaults in before create is called.
kgrpo_str OptionsSchema() {
  return kgrpo::Str(R"json({
    "title": "coder_launch_bounds",
    "type": "object",
    "additionalProperties": false,
    "properties": {
      "threads": {"title": "threads", "type": "integer", "minimum": 32, "maximum": 1024, "default": 1024,
                  "description": "The most threads that a block has. Blocks with more cannot be launched."}
    }
  })json");
}

// Guard turns whatever is thrown into an error of the ABI: no exception leaves the plugin.
kgrpo_error* Create(const kgrpo_host*, kgrpo_str options, kgrpo_coder** out) {
  return kgrpo::Guard(
      [&] { *out = new kgrpo_coder{nlohmann::json::parse(kgrpo::View(options)).at("threads").get<int>()}; });
}

void Destroy(kgrpo_coder* self) { delete self; }

// An accepted request is answered exactly once. A coder that waits for a service answers later, from a thread of its
// own; one that is as quick as this answers at once.
kgrpo_error* Implement(kgrpo_coder* self, const kgrpo_coder_request* request, kgrpo_coder_done done) {
  return kgrpo::Guard([&] {
    const std::string bounds = "__launch_bounds__(" + std::to_string(self->threads) + ")";
    const std::string current = kgrpo::Copy(request->code_b);
    std::string source, message;
    kgrpo_coder_answer answer = {};
    answer.struct_size = sizeof answer;
    answer.attempts = 1;
    if (kgrpo::View(request->suggestion).find(kSuggestion) == std::string::npos) {
      answer.outcome = KGRPO_CODER_UNCLEAR;
      message = "this coder knows one thing: launch bounds";
    } else if (current.find("__launch_bounds__") != std::string::npos) {
      answer.outcome = KGRPO_CODER_NOT_APPLICABLE;
      message = "the kernel has launch bounds";
    } else {
      answer.outcome = KGRPO_CODER_OK;
      source = std::regex_replace(current, std::regex("__global__ void "), "__global__ void " + bounds + " ");
    }
    if (answer.outcome == KGRPO_CODER_OK && source == current) {
      answer.outcome = KGRPO_CODER_NOT_APPLICABLE;
      source.clear();
      message = "there is no __global__ void";
    }
    answer.source = kgrpo::Str(source);
    answer.summary = kgrpo::Str(source.empty() ? std::string_view() : std::string_view(bounds));
    answer.message = kgrpo::Str(message);
    done.done(done.context, &answer, nullptr);
  });
}

// Nothing is ever in flight.
void Cancel(kgrpo_coder*) {}

// For baselines that play a coder's own suggestions, and for warm starts. Optional.
kgrpo_error* Suggestions(const kgrpo_coder*, kgrpo_text_sink sink) {
  return kgrpo::Guard([&] { sink.put(sink.context, kgrpo::Str(kSuggestion)); });
}

const kgrpo_coder_interface kInterface = {
    sizeof(kgrpo_coder_interface), OptionsSchema, Create, Destroy, Implement, Cancel, Suggestions,
    /*describe_request=*/nullptr,
    /*describe=*/nullptr,
    /*spending=*/nullptr,
    /*get_extension=*/nullptr};

}  // namespace

KGRPO_PLUGIN("coder_launch_bounds", "0.1.0", "adds launch bounds to kernels", {KGRPO_CODER_INTERFACE, &kInterface});
