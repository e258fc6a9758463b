// config.json of transformers 4 and 5: derived values, both accepted forms, and the messages for refused ones.
#include "policy_qwen/model/config.h"

#include <kgrpo/sdk/error.h>

#include "golden.h"
#include "policy_qwen/model/random.h"

namespace kgrpo::policy {
namespace {

using nlohmann::json;

// Qwen2-0.5B-Instruct's, as transformers 4 wrote it.
json Qwen2() {
  return {{"architectures", {"Qwen2ForCausalLM"}},
          {"model_type", "qwen2"},
          {"hidden_size", 896},
          {"intermediate_size", 4864},
          {"num_hidden_layers", 24},
          {"num_attention_heads", 14},
          {"num_key_value_heads", 2},
          {"vocab_size", 151936},
          {"max_position_embeddings", 32768},
          {"rms_norm_eps", 1e-6},
          {"rope_theta", 1000000.0},
          {"hidden_act", "silu"},
          {"tie_word_embeddings", true},
          {"use_sliding_window", false},
          {"sliding_window", 32768},
          {"max_window_layers", 24},
          {"torch_dtype", "bfloat16"},
          {"eos_token_id", 151645}};
}

ModelConfig Read(const json& config, const json& generation = nullptr) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() + "/config.json") << config;
  if (!generation.is_null()) std::ofstream(folder.path() + "/generation_config.json") << generation;
  return ReadModelConfig(folder.path());
}

// The message of reading the configuration, without the folder.
std::string Message(const json& config, const json& generation = nullptr) {
  try {
    Read(config, generation);
  } catch (const Error& error) {
    const std::string text = error.what();
    const size_t at = text.find(".json");
    return text.substr(text.rfind('/', at) + 1);
  }
  return "accepted";
}

json With(json config, const std::string& key, const json& value) {
  config[key] = value;
  return config;
}

json Of(const std::string& architecture, const std::string& type) {
  return With(With(Qwen2(), "architectures", {architecture}), "model_type", type);
}

TEST(ConfigTest, DerivesTheSizeOfAHead) {
  EXPECT_EQ(Read(Qwen2()).head_size, 64);
  EXPECT_EQ(Read(With(Qwen2(), "head_dim", 80)).head_size, 80);
  EXPECT_EQ(Read(Of("Qwen3ForCausalLM", "qwen3")).head_size, 128);
}

TEST(ConfigTest, ArchitecturesDifferInBiasesAndNorms) {
  const ModelConfig qwen2 = Read(Qwen2());
  EXPECT_TRUE(qwen2.attention_input_bias);
  EXPECT_FALSE(qwen2.attention_output_bias || qwen2.mlp_bias || qwen2.query_key_norm);
  const ModelConfig qwen3 = Read(Of("Qwen3ForCausalLM", "qwen3"));
  EXPECT_TRUE(qwen3.query_key_norm);
  EXPECT_FALSE(qwen3.attention_input_bias || qwen3.attention_output_bias);
  json biased = With(With(Qwen2(), "attention_bias", true), "mlp_bias", true);
  biased.erase("architectures");
  biased["model_type"] = "llama";
  const ModelConfig llama = Read(biased);
  EXPECT_EQ(llama.architecture, Architecture::kLlama);
  EXPECT_TRUE(llama.attention_input_bias && llama.attention_output_bias && llama.mlp_bias);
  json mistral = With(With(biased, "model_type", "mistral"), "sliding_window", nullptr);
  EXPECT_FALSE(Read(mistral).attention_input_bias || Read(mistral).mlp_bias) << "its code reads neither key";
}

TEST(ConfigTest, AbsentKeysHaveTransformersDefaults) {
  for (const auto& [name, type, kv_heads, context] :
       std::vector<std::tuple<std::string, std::string, int64_t, int64_t>>{
           {"Qwen2ForCausalLM", "qwen2", 32, 32768},
           {"Qwen3ForCausalLM", "qwen3", 32, 32768},
           {"LlamaForCausalLM", "llama", 64, 2048},
           {"MistralForCausalLM", "mistral", 8, 131072}}) {
    json config = With(With(Of(name, type), "num_attention_heads", 64), "sliding_window", nullptr);
    for (const char* key : {"num_key_value_heads", "max_position_embeddings", "rms_norm_eps"}) config.erase(key);
    EXPECT_EQ(Read(config).kv_head_count, kv_heads) << name;
    EXPECT_EQ(Read(config).context_length, context) << name;
    EXPECT_EQ(Read(With(config, "num_key_value_heads", nullptr)).kv_head_count, 64) << name;
  }
}

TEST(ConfigTest, ReadsRotaryPositionsOfBothGenerations) {
  EXPECT_EQ(Read(Qwen2()).rope.theta, 1e6);
  json modern = Qwen2();
  modern.erase("rope_theta");
  EXPECT_EQ(Read(modern).rope.theta, 1e4);
  modern["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 5e5}};
  EXPECT_EQ(Read(modern).rope.theta, 5e5);

  const json linear = With(Qwen2(), "rope_scaling", {{"type", "linear"}, {"factor", 2.0}});
  EXPECT_EQ(Read(linear).rope.scaling, RopeScaling::kLinear);
  const std::vector<float> plain = RopeFrequencies(Read(Qwen2()));
  const std::vector<float> halved = RopeFrequencies(Read(linear));
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_EQ(halved[i], plain[i] / 2);
}

TEST(ConfigTest, OfBothRotaryObjectsTheOlderCounts) {
  json both = With(Qwen2(), "rope_parameters", {{"rope_type", "default"}, {"rope_theta", 5e5}});
  both["rope_scaling"] = {{"type", "linear"}, {"factor", 2.0}};
  EXPECT_EQ(Read(both).rope.scaling, RopeScaling::kLinear);
  EXPECT_EQ(Read(both).rope.theta, 1e6) << "of the key beside them";
  both.erase("rope_theta");
  EXPECT_EQ(Read(both).rope.theta, 1e4) << "the default";
  both["rope_scaling"] = json::object();
  EXPECT_EQ(Read(both).rope.theta, 5e5) << "an empty object is none";
}

TEST(ConfigTest, ReadsYarn) {
  const auto yarn = [](json keys) {
    keys.update({{"rope_type", "yarn"}, {"factor", 4.0}});
    return Read(With(Qwen2(), "rope_scaling", keys)).rope;
  };
  const RopeConfig plain = yarn(json::object());
  EXPECT_EQ(plain.scaling, RopeScaling::kYarn);
  EXPECT_EQ(plain.original_context_length, 32768);
  EXPECT_DOUBLE_EQ(plain.attention_factor, 0.1 * std::log(4.0) + 1);
  EXPECT_EQ(plain.beta_fast, 32);
  EXPECT_EQ(plain.beta_slow, 1);
  EXPECT_TRUE(plain.truncate);
  EXPECT_EQ(yarn({{"attention_factor", 0.7}, {"mscale", 2.0}}).attention_factor, 0.7);
  EXPECT_DOUBLE_EQ(yarn({{"mscale", 2.0}, {"mscale_all_dim", 1.0}}).attention_factor,
                   (0.2 * std::log(4.0) + 1) / (0.1 * std::log(4.0) + 1));
  EXPECT_DOUBLE_EQ(yarn({{"mscale", 2.0}}).attention_factor, plain.attention_factor) << "one of the two has no effect";
  EXPECT_EQ(yarn({{"original_max_position_embeddings", 128}}).original_context_length, 128);
  EXPECT_FALSE(yarn({{"truncate", false}}).truncate);
}

TEST(ConfigTest, EndTokensOfTheGenerationConfigComeFirst) {
  EXPECT_EQ(Read(Qwen2()).end_ids, std::vector<int32_t>{151645});
  EXPECT_EQ(Read(Qwen2(), {{"eos_token_id", {151645, 151643}}}).end_ids, (std::vector<int32_t>{151645, 151643}));
  EXPECT_EQ(Read(Qwen2(), {{"temperature", 0.7}}).end_ids, std::vector<int32_t>{151645});
  EXPECT_TRUE(Read(With(Qwen2(), "eos_token_id", nullptr)).end_ids.empty());
}

// The context that a configuration leaves to prompt and completion.
int64_t Context(const json& config) {
  const ModelConfig read = Read(config);
  const bool is_limited = read.context_length < config["max_position_embeddings"].get<int64_t>();
  EXPECT_EQ(read.notes.size(), is_limited ? 1U : 0U) << "the log says so";
  EXPECT_EQ(read.context_note.empty(), !is_limited) << "so does a message about the context";
  return read.context_length;
}

TEST(ConfigTest, ASlidingWindowLimitsTheContext) {
  json used = With(With(With(Qwen2(), "use_sliding_window", true), "sliding_window", 512), "max_window_layers", 12);
  EXPECT_EQ(Context(used), 512);
  EXPECT_EQ(Context(With(used, "sliding_window", 32768)), 32768) << "as long as the context";
  EXPECT_EQ(Context(With(used, "sliding_window", nullptr)), 32768) << "switched off";
  EXPECT_EQ(Context(With(used, "use_sliding_window", false)), 32768);
  EXPECT_EQ(Context(With(used, "max_window_layers", 24)), 32768) << "in no layer";
  const json types = json(std::vector<std::string>(24, "full_attention"));
  EXPECT_EQ(Context(With(used, "layer_types", types)), 32768) << "these count, and max_window_layers does not";
  json sliding = types;
  sliding[3] = "sliding_attention";
  EXPECT_EQ(Context(With(With(used, "max_window_layers", 24), "layer_types", sliding)), 512);

  // Absent keys have transformers' defaults, 4096 tokens and 28 layers.
  used.erase("sliding_window");
  EXPECT_EQ(Context(used), 4096);
  used.erase("max_window_layers");
  EXPECT_EQ(Context(used), 32768);
  EXPECT_EQ(Context(With(used, "num_hidden_layers", 29)), 4096);

  json mistral = Of("MistralForCausalLM", "mistral");
  EXPECT_EQ(Context(With(mistral, "sliding_window", 64)), 64) << "in every layer, without use_sliding_window";
  EXPECT_EQ(Context(With(mistral, "sliding_window", nullptr)), 32768);
  mistral.erase("sliding_window");
  EXPECT_EQ(Context(mistral), 4096);
  EXPECT_EQ(Context(With(Of("LlamaForCausalLM", "llama"), "sliding_window", 64)), 32768) << "its code has no windows";
}

TEST(ConfigTest, RefusesWhatItCannotReproduce) {
  const std::vector<std::tuple<std::string, json, std::string>> cases = {
      {"architectures",
       {"Phi3ForCausalLM"},
       "the architecture \"Phi3ForCausalLM\" is not supported; supported are Qwen2ForCausalLM (also Qwen2.5), "
       "Qwen3ForCausalLM, LlamaForCausalLM and MistralForCausalLM"},
      {"architectures",
       {"LlamaForCausalLM"},
       "\"architectures\" holds \"LlamaForCausalLM\", and \"model_type\" is \"qwen2\", another architecture"},
      {"architectures", {"A", "B"}, "\"architectures\" is [\"A\",\"B\"]: expected a list of one name"},
      {"hidden_act", "gelu", "\"hidden_act\" is \"gelu\"; only silu is supported"},
      {"quantization_config",
       {{"bits", 4}},
       "the weights are quantized (\"quantization_config\"); give the unquantized model"},
      {"quantization_config",
       {{"quant_method", "awq"}},
       "the weights are quantized by awq (\"quantization_config\"); give the unquantized model"},
      {"quantization",
       {{"bits", 4}},
       "the weights are quantized by MLX (\"quantization\"); give the unquantized model"},
      {"is_causal", false, "\"is_causal\" is false: attention to later tokens is not supported"},
      {"is_causal", nullptr, "\"is_causal\" is null: attention to later tokens is not supported"},
      {"is_causal", 0, "\"is_causal\" is 0: attention to later tokens is not supported"},
      {"rope_scaling",
       {{"type", "longrope"}, {"factor", 4.0}},
       "\"rope_scaling\": the rotary scaling \"longrope\" is not supported; supported are default, linear, llama3 and "
       "yarn"},
      {"rope_scaling",
       {{"type", "yarn"}, {"factor", 4.0}, {"beta_fast", 1}, {"beta_slow", 2}},
       "\"rope_scaling\": \"beta_fast\" must not be below \"beta_slow\""},
      {"rope_parameters",
       {{"full_attention", {{"rope_type", "default"}}}},
       "\"rope_parameters\": rotary positions of layers by type (\"full_attention\") are not supported"},
      {"partial_rotary_factor", 0.5, "\"partial_rotary_factor\" other than 1 is not supported"},
      {"rope_parameters",
       {{"rope_type", "dynamic"}, {"factor", 2.0}},
       "\"rope_parameters\": the rotary scaling \"dynamic\" is not supported; supported are default, linear, "
       "llama3 and yarn"},
      {"rope_parameters", {{"rope_type", "linear"}}, "\"rope_parameters\": \"factor\" is missing"},
      {"rope_parameters", {{"rope_type", "linear"}, {"factor", 0.5}}, "\"rope_parameters\": \"factor\" is below 1"},
      {"rope_parameters",
       {{"rope_type", "default"}, {"partial_rotary_factor", 0.5}},
       "\"rope_parameters\": \"partial_rotary_factor\" other than 1 is not supported"},
      {"rope_theta", 0, "\"rope_theta\" must be above 0"},
      {"hidden_size", -1, "\"hidden_size\" is -1: expected a positive whole number"},
      {"hidden_size", "896", "\"hidden_size\" is \"896\": expected a positive whole number"},
      {"hidden_size", nullptr, "\"hidden_size\" is missing"},
      {"hidden_size", 900,
       "\"hidden_size\" (900) is not a multiple of \"num_attention_heads\" (14) and no \"head_dim\" is given"},
      {"num_key_value_heads", 3, "\"num_attention_heads\" (14) is not a multiple of \"num_key_value_heads\" (3)"},
      {"head_dim", 63, "the size of a head is 63: rotary positions need an even one"},
      {"rms_norm_eps", -1e-6, "\"rms_norm_eps\" is -1e-06: expected a number that is not negative"},
      {"tie_word_embeddings", "yes", "\"tie_word_embeddings\" is \"yes\": expected true or false"},
      {"eos_token_id", 151936, "\"eos_token_id\" holds 151936: expected ids from 0 to 151935 (\"vocab_size\" - 1)"},
      {"layer_types", {"full_attention"}, "\"layer_types\" is not a list of 24 types (\"num_hidden_layers\")"},
      {"layer_types", json(std::vector<std::string>(24, "chunked_attention")),
       "\"layer_types\" holds \"chunked_attention\": not supported"},
      {"layer_types", json(std::vector<std::string>(24, "sliding_attention")),
       "\"layer_types\" holds \"sliding_attention\", but \"use_sliding_window\" and \"sliding_window\" set none"},
  };
  for (const auto& [key, value, message] : cases)
    EXPECT_EQ(Message(With(Qwen2(), key, value)), "config.json: " + message);

  EXPECT_EQ(Message(With(Qwen2(), "is_causal", true)), "accepted");

  json nameless = Qwen2();
  nameless.erase("architectures");
  nameless.erase("model_type");
  EXPECT_EQ(Message(nameless), "config.json: neither \"architectures\" nor \"model_type\" says what the model is");
  EXPECT_EQ(Message(json::array()), "config.json: is a JSON array, must be an object");
  EXPECT_EQ(Message(Qwen2(), {{"eos_token_id", {-1}}}),
            "generation_config.json: \"eos_token_id\" holds -1: expected ids from 0 to 151935 (\"vocab_size\" - 1)");
}

// Every key that transformers reads from a config is computed, which a value of the wrong kind shows; or refused by
// name; or it changes nothing. config_keys.py compares the list with an installed transformers.
TEST(ConfigTest, EveryKeyThatTransformersReads) {
  const json keys = json::parse(std::ifstream(KGRPO_SOURCE_DIR "/tests/policy/config_keys.json"));
  const json wrong = json::array({json::array()});
  const json sliding = With(With(Qwen2(), "use_sliding_window", true), "max_window_layers", 12);
  const std::vector<json> models = {sliding, Of("Qwen3ForCausalLM", "qwen3"), Of("LlamaForCausalLM", "llama")};
  const auto is_read = [&](const auto& changed) {
    return std::any_of(models.begin(), models.end(), [&](const json& model) { return changed(model) != "accepted"; });
  };
  for (const std::string key : keys["computed"])
    EXPECT_TRUE(is_read([&](const json& model) { return Message(With(model, key, wrong)); })) << key;
  for (const std::string key : keys["rotary"]) {
    EXPECT_TRUE(is_read([&](const json& model) {
      std::string message = "accepted";
      for (const char* type : {"llama3", "yarn"}) {
        json rope = {{"rope_type", type}, {"factor", 2.0}, {"low_freq_factor", 1.0}, {"high_freq_factor", 4.0}};
        if (key == "type") rope.erase("rope_type");
        const std::string right = key == "type" ? "accepted" : Message(With(model, "rope_parameters", rope));
        rope[key] = wrong;
        const std::string changed = Message(With(model, "rope_parameters", rope));
        if (right == "accepted" && changed != right) message = changed;
      }
      return message;
    })) << key;
  }
  for (const auto& [key, value] : keys["refused"].items())
    EXPECT_THAT(Message(With(Qwen2(), key, value)), ::testing::HasSubstr("\"" + key + "\"")) << key;
  for (const auto& [key, value] : keys["neutral"].items())
    EXPECT_EQ(Message(With(Qwen2(), key, value)), "accepted") << key;
}

TEST(ConfigTest, SizesThatNoMemoryHoldsAreNamed) {
  const auto message = [](const char* key, const json& value) -> std::string {
    try {
      RequireRoom(Read(With(Qwen2(), key, value)), "DIR", 2, 64e9, "this machine");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  // transformers counts 494,032,768 parameters, norms and biases among them.
  EXPECT_EQ(message("rms_norm_eps", 1e-6), "") << "as it is, 1 GB";
  EXPECT_EQ(
      message("hidden_size", 14'000'000),
      "DIR/config.json: \"hidden_size\" is 14000000: the parameters alone would take 21518 TB, and this machine has "
      "64 GB");
  EXPECT_THAT(message("num_hidden_layers", int64_t{1} << 40), testing::HasSubstr("\"num_hidden_layers\" is 1099511"));
  EXPECT_THAT(message("vocab_size", int64_t{1} << 40), testing::HasSubstr("\"vocab_size\" is 1099511627776: "));
  EXPECT_THAT(message("intermediate_size", int64_t{1} << 40), testing::HasSubstr("\"intermediate_size\" is 1099511"));
  EXPECT_THAT(message("head_dim", int64_t{1} << 40), testing::HasSubstr("\"head_dim\" is 1099511627776: "));
}

TEST(RandomTest, StreamsAreKeyed) {
  EXPECT_EQ(RandomBits(1, 2), RandomBits(1, 2));
  EXPECT_NE(RandomBits(1, 2), RandomBits(1, 3));
  EXPECT_NE(RandomBits(1, 2), RandomBits(2, 1));
  EXPECT_NE(SeedFor(1, "a"), SeedFor(1, "b"));
  double sum = 0, squares = 0;
  constexpr int kCount = 100'000;
  for (uint64_t i = 0; i < kCount; ++i) {
    const double uniform = RandomUniform(i, 0);
    ASSERT_GE(uniform, 0.0);
    ASSERT_LT(uniform, 1.0);
    sum += uniform;
    squares += RandomNormal(5, i) * RandomNormal(5, i);
  }
  EXPECT_NEAR(sum / kCount, 0.5, 0.005);
  EXPECT_NEAR(squares / kCount, 1.0, 0.02);
}

}  // namespace
}  // namespace kgrpo::policy
