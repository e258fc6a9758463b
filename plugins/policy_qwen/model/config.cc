#include "policy_qwen/model/config.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numbers>
#include <optional>
#include <sstream>

#include "policy_qwen/model/files.h"

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
    if (!Has(key)) {
      if (!fallback) Fail(std::string("\"") + key + "\" is missing");
      return *fallback;
    }
    const json& value = At(key);
    if (!value.is_number_integer() || value.get<int64_t>() <= 0 || value.get<int64_t>() > (int64_t{1} << 40)) {
      Fail(std::string("\"") + key + "\" is " + value.dump() + ": expected a positive whole number");
    }
    return value.get<int64_t>();
  }

  double Number(const char* key, std::optional<double> fallback) const {
    if (!Has(key)) {
      if (!fallback) Fail(std::string("\"") + key + "\" is missing");
      return *fallback;
    }
    const json& value = At(key);
    if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() < 0) {
      Fail(std::string("\"") + key + "\" is " + value.dump() + ": expected a number that is not negative");
    }
    return value.get<double>();
  }

  bool Flag(const char* key, bool fallback) const {
    if (!Has(key)) return fallback;
    const json& value = At(key);
    if (!value.is_boolean()) Fail(std::string("\"") + key + "\" is " + value.dump() + ": expected true or false");
    return value.get<bool>();
  }

  std::string Text(const char* key, const std::string& fallback) const {
    if (!Has(key)) return fallback;
    const json& value = At(key);
    if (!value.is_string()) Fail(std::string("\"") + key + "\" is " + value.dump() + ": expected a text");
    return value.get<std::string>();
  }

 private:
  std::string file_;
  const json& object_;
};

void ReadArchitecture(const Reader& reader, ModelConfig& config) {
  std::string name;
  if (reader.Has("architectures")) {
    const json& list = reader.At("architectures");
    if (!list.is_array() || list.size() != 1 || !list[0].is_string()) {
      reader.Fail("\"architectures\" is " + list.dump() + ": expected a list of one name");
    }
    name = list[0].get<std::string>();
  } else {
    const std::string type = reader.Text("model_type", "");
    if (type.empty()) reader.Fail("neither \"architectures\" nor \"model_type\" says what the model is");
    name = type == "qwen2"   ? "Qwen2ForCausalLM"
           : type == "qwen3" ? "Qwen3ForCausalLM"
           : type == "llama" ? "LlamaForCausalLM"
                             : type;
  }
  if (name == "Qwen2ForCausalLM") {
    config.architecture = Architecture::kQwen2;
  } else if (name == "Qwen3ForCausalLM") {
    config.architecture = Architecture::kQwen3;
  } else if (name == "LlamaForCausalLM") {
    config.architecture = Architecture::kLlama;
  } else {
    reader.Fail("the architecture \"" + name +
                    "\" is not supported; supported are Qwen2ForCausalLM (also Qwen2.5), Qwen3ForCausalLM and "
                    "LlamaForCausalLM",
                KGRPO_ERROR_UNSUPPORTED);
  }
  config.architecture_name = name;
}

// transformers 5 writes one object, rope_parameters; transformers 4 wrote rope_theta beside rope_scaling.
void ReadRope(const std::string& path, const Reader& reader, ModelConfig& config) {
  config.rope.theta = reader.Number("rope_theta", 10000.0);
  config.rope.original_context_length = config.context_length;
  const char* key = reader.Has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  if (reader.Has(key)) {
    if (!reader.At(key).is_object()) reader.Fail(std::string("\"") + key + "\" is not an object");
    const Reader rope(path + ": \"" + key + "\"", reader.At(key));
    config.rope.theta = rope.Number("rope_theta", config.rope.theta);
    if (rope.Number("partial_rotary_factor", 1.0) != 1.0) {
      rope.Fail("\"partial_rotary_factor\" other than 1 is not supported", KGRPO_ERROR_UNSUPPORTED);
    }
    const std::string type = rope.Text("rope_type", rope.Text("type", "default"));
    if (type == "linear") {
      config.rope.scaling = RopeScaling::kLinear;
    } else if (type == "llama3") {
      config.rope.scaling = RopeScaling::kLlama3;
      config.rope.low_frequency_factor = rope.Number("low_freq_factor", std::nullopt);
      config.rope.high_frequency_factor = rope.Number("high_freq_factor", std::nullopt);
      config.rope.original_context_length = rope.Positive("original_max_position_embeddings", config.context_length);
      if (config.rope.low_frequency_factor >= config.rope.high_frequency_factor) {
        rope.Fail("\"low_freq_factor\" must be below \"high_freq_factor\"");
      }
    } else if (type != "default") {
      rope.Fail("the rotary scaling \"" + type + "\" is not supported; supported are default, linear and llama3",
                KGRPO_ERROR_UNSUPPORTED);
    }
    if (config.rope.scaling != RopeScaling::kNone) {
      config.rope.factor = rope.Number("factor", std::nullopt);
      if (config.rope.factor < 1.0) rope.Fail("\"factor\" is below 1");
    }
  }
  if (config.rope.theta <= 0) reader.Fail("\"rope_theta\" must be above 0");
}

// A window at least as long as the context changes nothing; one that is used and shorter would change the model.
void RefuseSlidingWindow(const Reader& reader, const ModelConfig& config) {
  bool slides = false;
  if (reader.Has("layer_types")) {
    for (const json& type : reader.At("layer_types")) {
      if (type == "sliding_attention") {
        slides = true;
      } else if (type != "full_attention") {
        reader.Fail("\"layer_types\" holds " + type.dump() + ": not supported", KGRPO_ERROR_UNSUPPORTED);
      }
    }
  } else if (reader.Flag("use_sliding_window", false)) {
    slides = reader.Number("max_window_layers", config.layer_count) < static_cast<double>(config.layer_count);
  }
  if (slides && reader.Flag("use_sliding_window", true) && reader.Has("sliding_window") &&
      reader.Positive("sliding_window") < config.context_length) {
    reader.Fail("sliding-window attention is in use (\"sliding_window\": " + reader.At("sliding_window").dump() +
                    ", below \"max_position_embeddings\") and not supported",
                KGRPO_ERROR_UNSUPPORTED);
  }
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
  const json object = ReadJsonObject(path);
  const Reader reader(path, object);

  ModelConfig config;
  ReadArchitecture(reader, config);
  if (reader.Has("quantization_config")) {
    reader.Fail("the weights are quantized (\"quantization_config\"); give the unquantized model",
                KGRPO_ERROR_UNSUPPORTED);
  }
  const std::string activation = reader.Text("hidden_act", "silu");
  if (activation != "silu") {
    reader.Fail("\"hidden_act\" is \"" + activation + "\"; only silu is supported", KGRPO_ERROR_UNSUPPORTED);
  }

  const bool is_llama = config.architecture == Architecture::kLlama;
  config.vocabulary_size = reader.Positive("vocab_size");
  config.hidden_size = reader.Positive("hidden_size");
  config.intermediate_size = reader.Positive("intermediate_size");
  config.layer_count = reader.Positive("num_hidden_layers");
  config.head_count = reader.Positive("num_attention_heads");
  config.kv_head_count = reader.Positive("num_key_value_heads", config.head_count);
  config.context_length = reader.Positive("max_position_embeddings", is_llama ? 2048 : 32768);
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
    config.head_size = 128;  // what Qwen3's configuration class fills in
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
    config.attention_input_bias = true;  // not configurable in Qwen2
  } else {
    config.attention_input_bias = config.attention_output_bias = reader.Flag("attention_bias", false);
    config.mlp_bias = is_llama && reader.Flag("mlp_bias", false);
  }
  ReadRope(path, reader, config);
  RefuseSlidingWindow(reader, config);

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

std::vector<float> RopeFrequencies(const ModelConfig& config) {
  const RopeConfig& rope = config.rope;
  std::vector<float> frequencies(static_cast<size_t>(config.head_size / 2));
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
    }
    frequencies[i] = frequency;
  }
  return frequencies;
}

}  // namespace kgrpo::policy
