#include "policy_qwen/model/config.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numbers>
#include <optional>
#include <sstream>
#include <system_error>

#include "policy_qwen/files.h"

namespace kgrpo::policy {
namespace {

using nlohmann::json;

// A JSON object of a file, read key by key with errors that name both.
class Reader {
 public:
  Reader(std::string file, const json& object) : file_(std::move(file)), object_(object) {}

  [[noreturn]] void Fail(const std::string& message, kgrpo_error_code code = KGRPO_ERROR_INVALID) const {
    throw Error(code, file_ + ": " + message);
  }

  // Present and not null: transformers writes null for "not set".
  bool Has(const char* key) const { return object_.contains(key) && !object_[key].is_null(); }
  const json& At(const char* key) const { return object_[key]; }

  int64_t Positive(const char* key, std::optional<int64_t> fallback = std::nullopt) const {
    const auto is_right = [](const json& value) {
      return value.is_number_integer() && value.get<int64_t>() > 0 && value.get<int64_t>() <= int64_t{1} << 40;
    };
    return Get(key, fallback, is_right, "a positive whole number");
  }
  double Number(const char* key, std::optional<double> fallback) const {
    const auto is_right = [](const json& value) {
      return value.is_number() && std::isfinite(value.get<double>()) && value.get<double>() >= 0;
    };
    return Get(key, fallback, is_right, "a number that is not negative");
  }
  bool Flag(const char* key, bool fallback) const {
    return Get(
        key, std::optional(fallback), [](const json& value) { return value.is_boolean(); }, "true or false");
  }
  std::string Text(const char* key, const std::string& fallback) const {
    return Get(
        key, std::optional(fallback), [](const json& value) { return value.is_string(); }, "a text");
  }

  bool IsNull(const char* key) const { return object_.contains(key) && object_[key].is_null(); }
  void Note(ModelConfig& config, const std::string& text) const { config.notes.push_back(file_ + ": " + text); }

 private:
  // Of an absent key: the fallback, if there is one.
  template <typename T, typename IsRight>
  T Get(const char* key, const std::optional<T>& fallback, const IsRight& is_right, const char* expected) const {
    const std::string name = std::string("\"") + key + "\"";
    if (!Has(key) && !fallback) Fail(name + " is missing");
    if (!Has(key)) return *fallback;
    if (!is_right(At(key))) Fail(name + " is " + At(key).dump() + ": expected " + expected);
    return At(key).get<T>();
  }

  std::string file_;
  const json& object_;
};

struct KnownArchitecture {
  const char *type, *name;
  Architecture architecture;
  int64_t context_length, kv_heads;  // defaults of transformers' configuration; 0: as many as heads
};

constexpr KnownArchitecture kArchitectures[] = {
    {"qwen2", "Qwen2ForCausalLM", Architecture::kQwen2, 32768, 32},
    {"qwen3", "Qwen3ForCausalLM", Architecture::kQwen3, 32768, 32},
    {"llama", "LlamaForCausalLM", Architecture::kLlama, 2048, 0},
    {"mistral", "MistralForCausalLM", Architecture::kMistral, 131072, 8},
};

const KnownArchitecture& ReadArchitecture(const Reader& reader) {
  std::string name;
  if (reader.Has("architectures")) {
    const json& list = reader.At("architectures");
    if (!list.is_array() || list.size() != 1 || !list[0].is_string()) {
      reader.Fail("\"architectures\" is " + list.dump() + ": expected a list of one name");
    }
    name = list[0].get<std::string>();
  }
  const std::string type = reader.Text("model_type", "");
  if (name.empty() && type.empty()) reader.Fail("neither \"architectures\" nor \"model_type\" says what the model is");
  for (const KnownArchitecture& known : kArchitectures) {
    if (name.empty() ? type != known.type : name != known.name) continue;
    if (!type.empty() && type != known.type) {
      reader.Fail("\"architectures\" holds \"" + name + "\", and \"model_type\" is \"" + type +
                  "\", another architecture");
    }
    return known;
  }
  reader.Fail("the architecture \"" + (name.empty() ? type : name) +
                  "\" is not supported; supported are Qwen2ForCausalLM (also Qwen2.5), Qwen3ForCausalLM, "
                  "LlamaForCausalLM and MistralForCausalLM",
              KGRPO_ERROR_UNSUPPORTED);
}

// transformers' formula for yarn's factor on cosines and sines.
double YarnAttentionFactor(const Reader& rope, double factor) {
  if (rope.Has("attention_factor")) return rope.Number("attention_factor", std::nullopt);
  const auto scale = [&](double mscale) { return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0; };
  const double mscale = rope.Number("mscale", 0), all = rope.Number("mscale_all_dim", 0);
  return mscale != 0 && all != 0 ? scale(mscale) / scale(all) : scale(1);
}

// transformers 5 writes one object, rope_parameters; transformers 4 wrote rope_theta beside rope_scaling. Of both
// objects, transformers takes rope_scaling.
void ReadRope(const std::string& path, const Reader& reader, ModelConfig& config) {
  RopeConfig& to = config.rope;
  const bool is_old = reader.Has("rope_scaling") && !reader.At("rope_scaling").empty();
  const char* key = is_old ? "rope_scaling" : "rope_parameters";
  const json object = reader.Has(key) ? reader.At(key) : json::object();
  if (!object.is_object()) reader.Fail(std::string("\"") + key + "\" is not an object");
  const Reader rope(path + ": \"" + key + "\"", object);
  to.theta = rope.Number("rope_theta", reader.Number("rope_theta", 10000.0));
  if (to.theta <= 0) reader.Fail("\"rope_theta\" must be above 0");
  for (const Reader* place : {&reader, &rope}) {
    if (place->Number("partial_rotary_factor", 1.0) != 1.0)
      place->Fail("\"partial_rotary_factor\" other than 1 is not supported", KGRPO_ERROR_UNSUPPORTED);
  }
  for (const auto& [name, value] : object.items()) {
    if (value.is_object())
      rope.Fail("rotary positions of layers by type (\"" + name + "\") are not supported", KGRPO_ERROR_UNSUPPORTED);
  }
  const std::string type = rope.Text("rope_type", rope.Text("type", "default"));
  if (type == "default") return;
  if (type == "linear") {
    to.scaling = RopeScaling::kLinear;
  } else if (type == "llama3") {
    to.scaling = RopeScaling::kLlama3;
  } else if (type == "yarn") {
    to.scaling = RopeScaling::kYarn;
  } else {
    rope.Fail("the rotary scaling \"" + type + "\" is not supported; supported are default, linear, llama3 and yarn",
              KGRPO_ERROR_UNSUPPORTED);
  }
  to.factor = rope.Number("factor", std::nullopt);
  if (to.factor < 1.0) rope.Fail("\"factor\" is below 1");
  constexpr const char* kOriginal = "original_max_position_embeddings";
  to.original_context_length = reader.Positive(kOriginal, rope.Positive(kOriginal, config.context_length));
  if (to.scaling == RopeScaling::kLlama3) {
    to.low_frequency_factor = rope.Number("low_freq_factor", std::nullopt);
    to.high_frequency_factor = rope.Number("high_freq_factor", std::nullopt);
    if (to.low_frequency_factor >= to.high_frequency_factor)
      rope.Fail("\"low_freq_factor\" must be below \"high_freq_factor\"");
  } else if (to.scaling == RopeScaling::kYarn) {
    to.attention_factor = YarnAttentionFactor(rope, to.factor);
    const double fast = rope.Number("beta_fast", 0), slow = rope.Number("beta_slow", 0);
    if (fast != 0) to.beta_fast = fast;
    if (slow != 0) to.beta_slow = slow;
    to.truncate = rope.Flag("truncate", true);
    if (to.beta_fast < to.beta_slow) rope.Fail("\"beta_fast\" must not be below \"beta_slow\"");
  }
}

// True if a layer of transformers' model attends within sliding_window only. Llama's has no such layers.
bool HasSlidingLayers(const Reader& reader, const ModelConfig& config) {
  constexpr int64_t kMaxWindowLayers = 28;  // transformers' default
  if (config.architecture == Architecture::kLlama) return false;
  const bool is_mistral = config.architecture == Architecture::kMistral;
  const bool in_use = is_mistral || reader.Flag("use_sliding_window", false);
  if (!reader.Has("layer_types")) {
    if (is_mistral) return true;
    return in_use && reader.Number("max_window_layers", kMaxWindowLayers) < static_cast<double>(config.layer_count);
  }
  const json& types = reader.At("layer_types");
  if (is_mistral) reader.Fail("\"layer_types\" of a Mistral model is not supported", KGRPO_ERROR_UNSUPPORTED);
  if (!types.is_array() || static_cast<int64_t>(types.size()) != config.layer_count) {
    reader.Fail("\"layer_types\" is not a list of " + std::to_string(config.layer_count) +
                " types (\"num_hidden_layers\")");
  }
  bool slides = false;
  for (const json& type : types) {
    if (type == "sliding_attention") {
      slides = true;
    } else if (type != "full_attention") {
      reader.Fail("\"layer_types\" holds " + type.dump() + ": not supported", KGRPO_ERROR_UNSUPPORTED);
    }
  }
  if (slides && (!in_use || reader.IsNull("sliding_window"))) {
    reader.Fail(
        "\"layer_types\" holds \"sliding_attention\", but \"use_sliding_window\" and \"sliding_window\" set none");
  }
  return slides;
}

// A window changes nothing about sequences that it covers, so a shorter one becomes the context's length.
void ReadSlidingWindow(const Reader& reader, ModelConfig& config) {
  constexpr int64_t kWindow = 4096;  // transformers' default; null turns the window off
  if (!HasSlidingLayers(reader, config) || reader.IsNull("sliding_window")) return;
  const int64_t window = reader.Positive("sliding_window", kWindow);
  if (window >= config.context_length) return;
  config.context_length = window;
  config.context_note =
      " (the model's sliding window; beyond it sliding-window attention would begin, which is not "
      "supported)";
  reader.Note(config,
              "\"sliding_window\" is " + std::to_string(window) +
                  ": prompt and completion are limited to that many tokens, because sliding-window attention is "
                  "not supported");
}

std::vector<int32_t> ReadEndIds(const Reader& reader, int64_t vocabulary_size) {
  std::vector<int32_t> ids;
  if (!reader.Has("eos_token_id")) return ids;
  const json& value = reader.At("eos_token_id");
  const json list = value.is_array() ? value : json::array({value});
  for (const json& id : list) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= vocabulary_size) {
      reader.Fail("\"eos_token_id\" holds " + id.dump() + ": expected ids from 0 to " +
                  std::to_string(vocabulary_size - 1) + " (\"vocab_size\" - 1)");
    }
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

// Keys of config.json that transformers' code of these architectures reads, and that change what a model computes in a
// way that is not computed here. tests/policy/config_keys.json lists every key that it reads: the others are read below
// or change nothing (dtype, dropout in training, caches).
struct RefusedKey {
  const char* name;
  bool (*is_neutral)(const json& value);
  const char* why;
};
bool IsEmpty(const json& value) { return value.is_null() || value.empty(); }
constexpr RefusedKey kRefusedKeys[] = {
    // create_causal_mask: any value that Python takes as false gives attention in both directions, null too.
    {"is_causal",
     [](const json& value) {
       return value == true || (value.is_number() && value != 0) ||
              (value.is_string() && !value.get_ref<const std::string&>().empty());
     },
     "attention to later tokens"},
    {"per_layer_config", IsEmpty, "a model whose layers differ"},
    {"transformers_weights", [](const json& value) { return value.is_null(); }, "another file of weights"},
    {"fusion_config", IsEmpty, "a model with fused modules"}};

// Weights of fewer bits, by the names of what wrote them.
void RefuseQuantized(const std::string& folder, const Reader& reader) {
  std::string by, key;
  if (reader.Has("quantization_config")) {
    key = "quantization_config";
    const json& quantized = reader.At(key.c_str());
    if (quantized.is_object() && quantized.contains("quant_method") && quantized["quant_method"].is_string())
      by = " by " + quantized["quant_method"].get<std::string>();
  } else if (reader.Has("quantization")) {
    key = "quantization";
    by = " by MLX";
  } else if (FileExists(folder + "/hf_quant_config.json")) {
    key = "hf_quant_config.json";
    by = " by ModelOpt";
  }
  if (!key.empty())
    reader.Fail("the weights are quantized" + by + " (\"" + key + "\"); give the unquantized model",
                KGRPO_ERROR_UNSUPPORTED);
}

// A folder of llama.cpp has its weights, tokenizer and configuration in one file.
void RefuseGguf(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".gguf" && !FileExists(folder + "/config.json"))
      throw Error(KGRPO_ERROR_UNSUPPORTED, folder + ": has " + entry.path().filename().string() +
                                               " (GGUF) and no config.json; give the model's Hugging Face folder");
  }
}

// "64 GB", "21504 TB"
std::string SizeText(double bytes) {
  const bool large = bytes >= 1e13;
  const double size = bytes / (large ? 1e12 : 1e9);
  char text[400];
  std::snprintf(text, sizeof text, size < 10 ? "%.1f %s" : "%.0f %s", size, large ? "TB" : "GB");
  return text;
}

}  // namespace

ModelConfig ReadModelConfig(const std::string& folder) {
  const std::string path = folder + "/config.json";
  RefuseGguf(folder);
  const json object = ReadJsonObject(path);
  const Reader reader(path, object);

  ModelConfig config;
  const KnownArchitecture& known = ReadArchitecture(reader);
  config.architecture = known.architecture;
  config.architecture_name = known.name;
  RefuseQuantized(folder, reader);
  for (const RefusedKey& key : kRefusedKeys) {
    if (object.contains(key.name) && !key.is_neutral(object[key.name]))
      reader.Fail(
          std::string("\"") + key.name + "\" is " + object[key.name].dump() + ": " + key.why + " is not supported",
          KGRPO_ERROR_UNSUPPORTED);
  }
  const std::string activation = reader.Text("hidden_act", "silu");
  if (activation != "silu" && activation != "swish") {  // two names of one function
    reader.Fail("\"hidden_act\" is \"" + activation + "\"; only silu is supported", KGRPO_ERROR_UNSUPPORTED);
  }

  config.vocabulary_size = reader.Positive("vocab_size");
  config.hidden_size = reader.Positive("hidden_size");
  config.intermediate_size = reader.Positive("intermediate_size");
  config.layer_count = reader.Positive("num_hidden_layers");
  config.head_count = reader.Positive("num_attention_heads");
  config.kv_head_count =
      reader.Positive("num_key_value_heads",
                      known.kv_heads == 0 || reader.IsNull("num_key_value_heads") ? config.head_count : known.kv_heads);
  config.context_length = reader.Positive("max_position_embeddings", known.context_length);
  config.norm_epsilon = reader.Number("rms_norm_eps", 1e-6);
  config.initializer_range = reader.Number("initializer_range", 0.02);
  config.tied_head = reader.Flag("tie_word_embeddings", false);
  if (config.head_count % config.kv_head_count != 0) {
    reader.Fail("\"num_attention_heads\" (" + std::to_string(config.head_count) +
                ") is not a multiple of \"num_key_value_heads\" (" + std::to_string(config.kv_head_count) + ")");
  }
  if (reader.Has("head_dim")) {
    config.head_size = reader.Positive("head_dim");
  } else if (config.architecture == Architecture::kQwen3) {
    config.head_size = 128;  // the default of Qwen3's configuration class
  } else if (config.hidden_size % config.head_count != 0) {
    reader.Fail("\"hidden_size\" (" + std::to_string(config.hidden_size) +
                ") is not a multiple of \"num_attention_heads\" (" + std::to_string(config.head_count) +
                ") and no \"head_dim\" is given");
  } else {
    config.head_size = config.hidden_size / config.head_count;
  }
  if (config.head_size % 2 != 0) {
    reader.Fail("the size of a head is " + std::to_string(config.head_size) + ": rotary positions need an even one");
  }

  config.query_key_norm = config.architecture == Architecture::kQwen3;
  if (config.architecture == Architecture::kQwen2) {
    config.attention_input_bias = true;                        // not configurable in Qwen2
  } else if (config.architecture != Architecture::kMistral) {  // which has none
    config.attention_input_bias = config.attention_output_bias = reader.Flag("attention_bias", false);
    config.mlp_bias = config.architecture == Architecture::kLlama && reader.Flag("mlp_bias", false);
  }
  ReadRope(path, reader, config);
  ReadSlidingWindow(reader, config);

  config.end_ids = ReadEndIds(reader, config.vocabulary_size);
  const std::string generation_path = folder + "/generation_config.json";
  if (FileExists(generation_path)) {
    const json generation = ReadJsonObject(generation_path);
    const Reader generation_reader(generation_path, generation);
    const std::vector<int32_t> ids = ReadEndIds(generation_reader, config.vocabulary_size);
    if (!ids.empty()) config.end_ids = ids;
  }
  return config;
}

void RequireRoom(const ModelConfig& config, const std::string& folder, double bytes, double available,
                 const std::string& memory) {
  // In doubles: products of absurd sizes, which a wrong config.json may hold, overflow 64 bits.
  const auto hidden = static_cast<double>(config.hidden_size), head = static_cast<double>(config.head_size),
             inner = static_cast<double>(config.intermediate_size), layers = static_cast<double>(config.layer_count),
             vocabulary = static_cast<double>(config.vocabulary_size), heads = static_cast<double>(config.head_count),
             key_value_heads = static_cast<double>(config.kv_head_count);
  const double layer = 2 * hidden * head * (heads + key_value_heads) + 3 * hidden * inner;
  const double needed = bytes * (layers * layer + (config.tied_head ? 1 : 2) * vocabulary * hidden);
  if (needed <= available) return;
  // Blames the size that exceeds that of the largest existing models by the greatest factor.
  struct Size {
    const char* key;
    double value, largest;
  };
  std::vector<Size> sizes = {{"hidden_size", hidden, 16384},
                             {"intermediate_size", inner, 65536},
                             {"num_hidden_layers", layers, 128},
                             {"num_attention_heads", heads, 128},
                             {"vocab_size", vocabulary, 262144}};
  if (config.head_size * config.head_count != config.hidden_size) sizes.push_back({"head_dim", head, 256});
  const Size& worst = *std::ranges::max_element(sizes, {}, [](const Size& size) { return size.value / size.largest; });
  throw Error(KGRPO_ERROR_INVALID, folder + "/config.json: \"" + worst.key + "\" is " +
                                       std::to_string(static_cast<int64_t>(worst.value)) +
                                       ": the parameters alone would take " + SizeText(needed) + ", and " + memory +
                                       " has " + SizeText(available));
}

namespace {

// For each frequency, how much of it yarn divides by `factor`: 0 for the first ones, 1 for the last, rising between.
std::vector<float> YarnRamp(const RopeConfig& rope, int64_t head_size) {
  const auto place = [&](double rotations) {
    const double context = static_cast<double>(rope.original_context_length);
    return static_cast<double>(head_size) * std::log(context / (rotations * 2 * std::numbers::pi)) /
           (2 * std::log(rope.theta));
  };
  double low = place(rope.beta_fast), high = place(rope.beta_slow);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(head_size - 1));
  if (low == high) high += 0.001;
  std::vector<float> ramp(static_cast<size_t>(head_size / 2));
  for (size_t i = 0; i < ramp.size(); ++i) {
    const float along = (static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(high - low);
    ramp[i] = std::clamp(along, 0.0f, 1.0f);
  }
  return ramp;
}

}  // namespace

std::vector<float> RopeFrequencies(const ModelConfig& config) {
  const RopeConfig& rope = config.rope;
  std::vector<float> frequencies(static_cast<size_t>(config.head_size / 2)), ramp;
  if (rope.scaling == RopeScaling::kYarn) ramp = YarnRamp(rope, config.head_size);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(config.head_size);
    float frequency = 1.0f / std::pow(static_cast<float>(rope.theta), exponent);
    if (rope.scaling == RopeScaling::kLinear) {
      frequency /= static_cast<float>(rope.factor);
    } else if (rope.scaling == RopeScaling::kLlama3) {
      const double context = static_cast<double>(rope.original_context_length);
      const double wavelength = 2.0 * std::numbers::pi / frequency;
      if (wavelength > context / rope.low_frequency_factor) {
        frequency /= static_cast<float>(rope.factor);
      } else if (wavelength > context / rope.high_frequency_factor) {
        const double smooth = (context / wavelength - rope.low_frequency_factor) /
                              (rope.high_frequency_factor - rope.low_frequency_factor);
        frequency = static_cast<float>((1.0 - smooth) * frequency / rope.factor + smooth * frequency);
      }
    } else if (rope.scaling == RopeScaling::kYarn) {
      const float kept = 1.0f - ramp[i];
      const float power = std::pow(static_cast<float>(rope.theta), exponent);
      frequency = 1.0f / (static_cast<float>(rope.factor) * power) * (1.0f - kept) + frequency * kept;
    }
    frequencies[i] = frequency;
  }
  return frequencies;
}

}  // namespace kgrpo::policy
