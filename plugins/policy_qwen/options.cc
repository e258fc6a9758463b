#include "policy_qwen/options.h"

#include <nlohmann/json.hpp>

namespace kgrpo::policy {
namespace {

// Unset where the key is absent or null.
template <typename T>
std::optional<T> Optional(const nlohmann::ordered_json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::nullopt;
  return found->get<T>();
}

AdapterOptions ToAdapterOptions(const nlohmann::ordered_json& object) {
  AdapterOptions options;
  options.start = Optional<std::string>(object, "start").value_or("");
  options.rank = Optional<int64_t>(object, "rank");
  options.alpha = Optional<double>(object, "alpha");
  options.rank_stabilized = Optional<bool>(object, "use_rslora");
  options.targets = Optional<std::vector<std::string>>(object, "targets");
  return options;
}

}  // namespace

std::string_view OptionsSchema() {
  static constexpr std::string_view kSchema = R"json({
  "$schema": "http://json-schema.org/draft-07/schema#",
  "title": "policy_qwen",
  "description": "A Qwen2, Qwen2.5, Qwen3, Llama or Mistral model from a Hugging Face folder",
  "type": "object",
  "additionalProperties": false,
  "required": ["model"],
  "properties": {
    "model": {"title": "model folder", "type": "string", "minLength": 1,
      "x-reads": "content", "description": "A Hugging Face folder: config.json, tokenizer.json, and *.safetensors unless init is random; or such a folder of a Hugging Face cache; or a PEFT folder, whose adapter is merged into the base that it names. No model is downloaded. docs/models.md lists which folders work."},
    "init": {"title": "initial weights", "type": "string", "enum": ["pretrained", "random"], "default": "pretrained",
      "description": "pretrained reads the folder's weights; random draws them from the run's seed, with config.json's initializer_range."},
    "adapter": {"title": "LoRA adapter", "type": ["object", "null"], "additionalProperties": false, "default": null,
      "description": "Train low-rank factors A and B of the linear layers instead of all weights, which stay frozen: the weight in use is W + alpha / rank * B A. Saved as a PEFT folder. null: all weights train.",
      "properties": {
        "rank": {"title": "rank", "type": ["integer", "null"], "minimum": 1, "default": null,
          "description": "Rows of A and columns of B. null: 16, or the rank of start."},
        "alpha": {"title": "alpha", "type": ["number", "null"], "exclusiveMinimum": 0, "default": null,
          "description": "The adapter counts alpha / rank times. null: 32, or the alpha of start."},
        "use_rslora": {"title": "rank-stabilized scale", "type": ["boolean", "null"], "default": null,
          "description": "The adapter counts alpha / sqrt(rank) times. null: false, or as in start."},
        "targets": {"title": "adapted layers", "type": ["array", "null"], "items": {"type": "string", "enum": ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]}, "minItems": 1, "uniqueItems": true, "default": null,
          "description": "Linear layers of every transformer layer. null: all of them, or those of start."},
        "start": {"title": "adapter to start from", "type": ["string", "null"], "minLength": 1, "default": null,
          "x-reads": "content", "description": "A PEFT folder of an adapter of this model, such as a run's final. null: a new one, which changes nothing until it is trained."}
      }},
    "dtype": {"title": "number format of the weights", "type": "string", "enum": ["float32", "bfloat16", "fp32", "bf16"], "default": "float32",
      "description": "float32 (or fp32) is exact and good for small models; bfloat16 (or bf16) halves the memory of large ones. Gradients are always float32."},
    "device": {"title": "device", "type": ["string", "array"], "pattern": "^(cpu|cuda(:[0-9]+)?)$", "items": {"type": "string", "pattern": "^(cpu|cuda:[0-9]+)$"}, "minItems": 1, "default": "cpu",
      "x-resume": true, "description": "cpu, cuda (the first GPU; of several ranks on a machine each takes its own) or cuda:N. A list names one for each rank on a machine, in the order of their local ranks."},
    "threads": {"title": "CPU threads", "type": "integer", "minimum": 1, "maximum": 1024, "default": 1,
      "x-resume": true, "description": "Threads of the model's operators. One is best for tiny models and on busy machines; give large models on a CPU all cores. Results are the same bit for bit only for the same number. The setting is the process's: trainers share it."},
    "generation": {"title": "how completions are generated", "type": "string", "enum": ["auto", "engine"], "default": "auto",
      "x-resume": true, "description": "Where a policy on a GPU generates. engine: on the GPU, or the run is refused. auto: on the GPU if the engine's kernels were built, have code for the card and cover the model; else on the CPU, and the log gives the reason."},
    "generation_memory_mib": {"title": "memory of the generation cache, MiB", "type": ["integer", "null"], "minimum": 1, "default": null,
      "x-resume": true, "description": "Memory for the keys and values of all sequences. null: on a GPU a quarter of what is free at the first request (a coder's: when it is loaded, before the policy), on a CPU half of the machine's."},
    "chat_template": {"title": "chat template", "type": "string", "minLength": 1, "default": "auto",
      "x-reads": "content", "description": "auto: the model's own Jinja template. chatml or qwen3: a built-in one, for models whose vocabulary has <|im_start|> and <|im_end|>. Else the path of a Jinja file. The template in use is saved with the model."},
    "chat_template_arguments": {"title": "arguments of the chat template", "type": "object", "default": {},
      "description": "Variables that the template takes, by name, such as {enable_thinking: false} for Qwen3, {default_system: text} for chatml and qwen3, or {date_string: text} for Llama 3. A name that the template does not read is refused. Saved with the model, as defaults in its template."},
    "max_tokens_per_chunk": {"title": "tokens through the model at a time", "type": ["integer", "null"], "minimum": 1, "default": null,
      "x-resume": true, "description": "Training sequences go through the model in chunks of at most this many tokens (a longer sequence is one chunk). Affects memory and speed; results change by rounding only. null: 2048, on a GPU 16384."},
    "max_sequences": {"title": "sequences generated at a time", "type": "integer", "minimum": 1, "default": 256,
      "x-resume": true, "description": "Further requests wait; one starts as soon as another ends. Affects memory and speed."},
    "activation_memory_mib": {"title": "memory for activations, MiB", "type": ["integer", "null"], "minimum": 0, "default": null,
      "x-resume": true, "description": "Memory that a training forward pass may keep for its backward pass. Of chunks beyond it the layers' inputs are kept, if they fit, and the backward pass computes the rest again. null: 2048, on a GPU half of the free memory."},
    "tokenizer_only": {"title": "tokenizer only", "type": "boolean", "default": false,
      "description": "Load no weights: only the chat format and the tokenizer work, and tokenizer files are all that the folder must hold."}
  }
})json";
  return kSchema;
}

PolicyOptions ParseOptions(std::string_view json) {
  const nlohmann::ordered_json object = nlohmann::ordered_json::parse(json);
  const PolicyOptions defaults;
  PolicyOptions options;
  options.model = object.at("model").get<std::string>();
  options.random_weights = object.value("init", "pretrained") == "random";
  if (object.contains("adapter") && !object["adapter"].is_null()) options.adapter = ToAdapterOptions(object["adapter"]);
  const std::string dtype = object.value("dtype", "float32");
  options.bfloat16 = dtype == "bfloat16" || dtype == "bf16";
  if (object.contains("device")) {
    const auto& device = object.at("device");
    options.devices =
        device.is_array() ? device.get<std::vector<std::string>>() : std::vector{device.get<std::string>()};
    options.device = options.devices.at(0);
  }
  options.threads = object.value("threads", defaults.threads);
  options.engine_generation = object.value("generation", "auto") == "engine";
  options.generation_memory_mib = Optional<int64_t>(object, "generation_memory_mib");
  options.chat_template = object.value("chat_template", defaults.chat_template);
  options.max_tokens_per_chunk = Optional<int64_t>(object, "max_tokens_per_chunk");
  options.max_sequences = object.value("max_sequences", defaults.max_sequences);
  options.activation_memory_mib = Optional<int64_t>(object, "activation_memory_mib");
  options.tokenizer_only = object.value("tokenizer_only", defaults.tokenizer_only);
  if (object.contains("chat_template_arguments")) options.chat_template_arguments = object["chat_template_arguments"];
  return options;
}

}  // namespace kgrpo::policy
