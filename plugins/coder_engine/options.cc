#include "coder_engine/options.h"

#include <kgrpo/sdk/error.h>

#include <nlohmann/json.hpp>
#include <string>

#include "policy_qwen/options.h"

namespace kgrpo::coder_engine {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kOwnSchema = R"json({
  "$schema": "http://json-schema.org/draft-07/schema#",
  "title": "coder_engine",
  "description": "A model from a Hugging Face folder writes the kernels, in this process, with policy_qwen's generation",
  "type": "object",
  "additionalProperties": false,
  "required": ["model"],
  "properties": {
    "sampling": {"title": "sampling", "type": "object", "additionalProperties": false, "default": {},
      "description": "How answers are sampled. Applied in this order: temperature, top_k, top_p, min_p.",
      "properties": {
        "max_new_tokens": {"title": "tokens of an answer", "type": "integer", "minimum": 1, "maximum": 1048576, "default": 2048,
          "description": "At most, thoughts included. An answer that is cut off there has the outcome truncated."},
        "temperature": {"title": "temperature", "type": "number", "minimum": 0, "maximum": 100, "default": 0,
          "description": "0: the likeliest token always. Above: drawn with each request's own seed, so that a resumed run draws the same."},
        "top_k": {"title": "top k", "type": "integer", "minimum": 0, "maximum": 4294967295, "default": 0, "description": "Only the k likeliest tokens; 0: all."},
        "top_p": {"title": "top p", "type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 1.0,
          "description": "Only the likeliest tokens that together reach this probability; 1: all."},
        "min_p": {"title": "min p", "type": "number", "minimum": 0, "maximum": 1, "default": 0.0,
          "description": "Only tokens at least this likely relative to the likeliest; 0: all."}
      }}
  }
})json";

std::string MakeSchema() {
  Json schema = Json::parse(kOwnSchema);
  const Json model = Json::parse(policy::OptionsSchema()).at("properties");
  for (const char* name : {"model", "init", "dtype", "device", "threads", "generation", "generation_memory_mib",
                           "chat_template", "chat_template_arguments", "max_tokens_per_chunk", "max_sequences"})
    schema["properties"][name] = model.at(name);
  schema["properties"]["prompt"] = Json::parse(coder_shared::PromptSchema());
  return schema.dump();
}

}  // namespace

std::string_view OptionsSchema() {
  static const std::string schema = MakeSchema();
  return schema;
}

CoderOptions ReadOptions(std::string_view text) {
  const Json json = Json::parse(text);
  CoderOptions options;
  options.model = policy::ParseOptions(text);
  options.model.part = "coder";
  options.model.trains = false;
  const Json& sampling = json.at("sampling");
  options.sampling.struct_size = sizeof options.sampling;
  options.sampling.max_new_tokens = sampling.at("max_new_tokens").get<uint32_t>();
  options.sampling.temperature = sampling.at("temperature").get<double>();
  options.sampling.top_k = sampling.at("top_k").get<uint32_t>();
  options.sampling.top_p = sampling.at("top_p").get<double>();
  options.sampling.min_p = sampling.at("min_p").get<double>();
  std::string errors;
  options.prompt = coder_shared::ReadPromptOptions(
      nlohmann::json(json.at("prompt")), [&](const std::string& option, const std::string& error) {
        errors += (errors.empty() ? "options." : "\noptions.") + option + ": " + error;
      });
  if (!errors.empty()) throw Error(KGRPO_ERROR_INVALID, errors);
  return options;
}

}  // namespace kgrpo::coder_engine
