// A model folder whose model gives one of some answers, whatever it is asked: with temperature 0 the first, with
// temperature 1 each with the same probability. A tiny Qwen2 with a vocabulary in which each answer is a token.
#ifndef KGRPO_TESTS_CODER_ENGINE_SCRIPTED_MODEL_H
#define KGRPO_TESTS_CODER_ENGINE_SCRIPTED_MODEL_H

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kgrpo::test {

// Writes the folder. An answer that ends with kEndless is repeated until the completion is cut off.
inline constexpr const char* kEndless = "\n// and so on\n";
inline void WriteScriptedModel(const std::filesystem::path& folder, const std::vector<std::string>& answers,
                               int context = 16384) {
  const std::filesystem::path golden = KGRPO_SOURCE_DIR "/tests/golden/policy/qwen2";
  const auto read = [&](const char* name) { return nlohmann::json::parse(std::ifstream(golden / name)); };
  std::filesystem::create_directories(folder);
  nlohmann::json tokenizer = read("tokenizer.json"), config = read("config.json");
  const size_t words = config["vocab_size"], size = words + answers.size();
  for (size_t i = 0; i < answers.size(); ++i) {
    nlohmann::json token = tokenizer["added_tokens"][0];
    token["id"] = words + i;
    token["content"] = answers[i];
    token["special"] = false;
    tokenizer["added_tokens"].push_back(token);
  }
  config["vocab_size"] = size;
  config["max_position_embeddings"] = context;
  config["tie_word_embeddings"] = false;
  config["num_hidden_layers"] = 1;
  config["layer_types"] = {"full_attention"};
  std::ofstream(folder / "tokenizer.json") << tokenizer;
  std::ofstream(folder / "config.json") << config;
  for (const char* name : {"tokenizer_config.json", "chat_template.jinja", "generation_config.json"}) {
    std::filesystem::copy_file(golden / name, folder / name, std::filesystem::copy_options::overwrite_existing);
  }

  // The layer adds nothing to the embedding, so that the last token decides the next one: after a word each answer is
  // as likely, after an answer the end, or itself.
  const size_t hidden = config["hidden_size"], inner = config["intermediate_size"], end = config["eos_token_id"];
  const size_t heads = config["num_attention_heads"], kv = hidden / heads * config["num_key_value_heads"].get<size_t>();
  std::vector<float> embedding(size * hidden), head(size * hidden), zeros(hidden * inner), ones(hidden, 1.0F);
  head[end * hidden + 1] = 20;
  for (size_t i = 0; i < size; ++i) {
    const bool endless = i >= words && answers[i - words].ends_with(kEndless);
    embedding[i * hidden + (i < words ? 0 : endless ? 2 : 1)] = 1;
    if (i >= words) head[i * hidden] = i == words ? 20.001F : 20;
    if (endless) head[i * hidden + 2] = 20;
  }
  nlohmann::ordered_json header;
  std::string data;
  const auto add = [&](const std::string& name, const std::vector<size_t>& shape, const std::vector<float>& values) {
    size_t bytes = sizeof(float);
    for (const size_t extent : shape) bytes *= extent;
    header[name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {data.size(), data.size() + bytes}}};
    data.append(reinterpret_cast<const char*>(values.data()), bytes);
  };
  const std::string layer = "model.layers.0.";
  add("model.embed_tokens.weight", {size, hidden}, embedding);
  for (const char* norm : {"input_layernorm", "post_attention_layernorm"})
    add(layer + norm + ".weight", {hidden}, ones);
  for (const auto& [name, rows] : {std::pair{"q_proj", hidden}, {"k_proj", kv}, {"v_proj", kv}}) {
    add(layer + "self_attn." + name + ".weight", {rows, hidden}, zeros);
    add(layer + "self_attn." + name + ".bias", {rows}, zeros);
  }
  add(layer + "self_attn.o_proj.weight", {hidden, hidden}, zeros);
  for (const char* name : {"gate_proj", "up_proj"}) add(layer + "mlp." + name + ".weight", {inner, hidden}, zeros);
  add(layer + "mlp.down_proj.weight", {hidden, inner}, zeros);
  add("model.norm.weight", {hidden}, ones);
  add("lm_head.weight", {size, hidden}, head);
  const std::string text = header.dump();
  const uint64_t length = text.size();  // the format's first 8 bytes
  std::ofstream file(folder / "model.safetensors", std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), sizeof length) << text << data;
}

}  // namespace kgrpo::test

#endif
