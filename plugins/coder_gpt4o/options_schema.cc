// The schema of options.h. No option in which a key might be written by mistake has a `pattern`, because the schema's
// messages repeat the value.
#include "coder_gpt4o/options.h"

namespace kgrpo::coder_gpt4o {
namespace {

// The schema, before and after the option `prompt`.
constexpr std::string_view kBefore = R"json({
  "$schema": "http://json-schema.org/draft-07/schema#",
  "title": "coder_gpt4o",
  "description": "GPT-4o, or any model behind OpenAI's chat completions, writes the kernels",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "base_url": {"title": "address", "type": "string", "default": "https://api.openai.com/v1",
      "description": "http or https; /chat/completions is appended to its path, and its query is kept. No user, password or key."},
    "allow_plain_http": {"title": "key over http", "type": "boolean", "default": false,
      "description": "Send a key over http to another machine too, where all on the way can read it."},
    "model": {"title": "model", "type": "string", "minLength": 1, "default": "gpt-4o",
      "description": "As the service names it."},
    "api_key_env": {"title": "variable of the key", "type": ["string", "null"], "default": "OPENAI_API_KEY",
      "description": "The name of the environment variable that holds the key, never the key itself; null: the service wants none."},
    "api_key_header": {"title": "header of the key", "type": "string", "minLength": 1, "default": "Authorization",
      "description": "Authorization sends \"Bearer KEY\"; any other header, such as api-key, the key only."},
    "api_key_command": {"title": "command for the key", "type": ["string", "null"], "default": null,
      "description": "For keys that expire: a shell command that writes the key, such as gcloud auth print-access-token. It is run before the first request, and again when the service refuses the key. api_key_env is ignored then."},
    "temperature": {"title": "temperature", "type": ["number", "null"], "minimum": 0, "maximum": 2, "default": 0,
      "description": "null: not sent, which reasoning models want."},
    "max_tokens": {"title": "tokens of an answer", "type": "integer", "minimum": 1, "maximum": 1000000, "default": 4096,
      "description": "At most; reasoning tokens count. Sent as max_completion_tokens for o1, o3, ... and gpt-5; for other names write extra_body: {max_completion_tokens: N} in its place."},
    "seed": {"title": "seed", "type": ["integer", "string", "null"], "default": null,
      "description": "A number is sent with every request; sample: another number for each request, drawn from the run's seed; null: none."},
    "extra_body": {"title": "further keys of the request", "type": "object", "additionalProperties": {}, "default": {},
      "description": "Added to the JSON that is posted: {top_p: 0.9, reasoning_effort: low}."},
    "extra_headers": {"title": "further headers", "type": "object", "additionalProperties": {}, "default": {},
      "description": "Names and values: {OpenAI-Organization: org-1}. A secret comes from a variable: {x-portkey-api-key: {env: PORTKEY_API_KEY}}."},

    "prompt": )json";
constexpr std::string_view kAfter = R"json(,
    "prices": {"title": "prices", "type": "object", "default": {},
      "description": "By model, in US dollars per million tokens: {gpt-4o: {prompt: 2.5, completion: 10}}. Prices of other models are ignored. A cost that the service states (OpenRouter, xAI, LiteLLM) is used instead.",
      "additionalProperties": {"type": "object", "additionalProperties": false, "required": ["prompt", "completion"],
        "properties": {
          "prompt": {"type": "number", "minimum": 0, "description": "Of what is sent."},
          "completion": {"type": "number", "minimum": 0, "description": "Of what is answered, reasoning included."},
          "cached_prompt": {"type": "number", "minimum": 0, "description": "Of prompt tokens that the service read from its cache; without it, prompt."}
        }}},
    "max_cost": {"title": "limit of the cost", "type": ["number", "null"], "minimum": 0, "default": null,
      "description": "US dollars that the run may spend on the coder, its resumptions included; before a call that could exceed it the run stops with a checkpoint. Needs the model's price."},

    "mode": {"title": "where answers come from", "type": "string", "enum": ["live", "cache", "replay"], "default": "live",
      "description": "live: the service; cache: a recording, and the service for what is not in it; replay: a recording alone, without a key or a network."},
    "recording": {"title": "recording", "type": ["string", "null"], "default": null,
      "x-reads": "place", "description": "For replay: a recording's file, or the folder of the run that made it. For cache: the file to read and to add to; not a run's own; null: one in the cache directory."},

    "stream": {"title": "streaming", "type": "boolean", "default": true,
      "description": "Answers as server-sent events, so that one that stalls is noticed after a minute."},
    "max_concurrency": {"title": "calls at once", "type": "integer", "minimum": 1, "maximum": 4096, "default": 32,
      "description": "Calls in flight, at most. Set it to what a server on your own machine answers at once (llama.cpp: --parallel, Ollama: OLLAMA_NUM_PARALLEL): further calls wait there until they time out."},
    "total_timeout_seconds": {"title": "time of an attempt", "type": "number", "exclusiveMinimum": 0, "maximum": 1000000, "default": 600,
      "description": "Seconds for one attempt in all."},
    "max_attempts": {"title": "attempts", "type": "integer", "minimum": 1, "maximum": 1000, "default": 8,
      "description": "Of one request, at most. Attempts during an outage of the service do not count."},
    "max_outage_seconds": {"title": "longest outage", "type": "number", "exclusiveMinimum": 0, "default": 3600,
      "description": "Seconds that the service may be down before the run stops."}
  },
  "x-removed": {"continuations": {"const": null, "description": "an answer in parts costs more than a larger max_tokens, so raise that"}}
})json";

}  // namespace

std::string_view OptionsSchema() {
  static const std::string schema = std::string(kBefore).append(coder_shared::PromptSchema()).append(kAfter);
  return schema;
}

}  // namespace kgrpo::coder_gpt4o
