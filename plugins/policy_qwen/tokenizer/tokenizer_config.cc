#include "policy_qwen/tokenizer/tokenizer_config.h"

#include <charconv>

#include "policy_qwen/tokenizer/json_reader.h"
#include "policy_qwen/tokenizer/unicode.h"

namespace kgrpo::tokenizer {
namespace {

using nlohmann::json;

// A token is written as a string, or as an object with its content.
std::optional<std::string> ReadToken(ObjectReader& reader, std::string_view key) {
  const json* value = reader.Find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  if (!value->is_object())
    reader.Fail(key, std::string("is a JSON ") + value->type_name() + ", must be a string or an object");
  return reader.Object(key).String("content");
}

void ReadDecoderTokens(ObjectReader& reader, TokenizerConfig& config) {
  if (reader.Find("added_tokens_decoder") == nullptr) return;
  ObjectReader decoder = reader.Object("added_tokens_decoder");
  for (const auto& [key, value] : reader.Require("added_tokens_decoder").items()) {
    int64_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0) decoder.Fail(key, "is not a token id");
    config.added_tokens.emplace_back(id, decoder.Object(key).String("content"));
  }
}

void ReadTemplate(ObjectReader& reader, TokenizerConfig& config) {
  const json* value = reader.Find("chat_template");
  if (value == nullptr) return;
  config.chat_template_source = config.file + ": chat_template";
  if (value->is_string()) {
    config.chat_template = value->get<std::string>();
    return;
  }
  if (!value->is_array()) {
    reader.Fail("chat_template",
                std::string("is a JSON ") + value->type_name() + ", must be a string or an array of {name, template}");
  }
  for (size_t i = 0; i < value->size(); ++i) {
    ObjectReader entry(reader.file(), "chat_template[" + std::to_string(i) + "]", (*value)[i]);
    if (entry.String("name") == "default") config.chat_template = entry.String("template");
  }
}

}  // namespace

TokenizerConfig ReadTokenizerConfig(const std::filesystem::path& folder) {
  TokenizerConfig config;
  const std::filesystem::path file = folder / "tokenizer_config.json";
  config.file = file.string();
  if (std::filesystem::exists(file)) {
    const json value = ReadJsonFile(file);
    ObjectReader reader(config.file, "", value);
    config.bos_token = ReadToken(reader, "bos_token");
    config.eos_token = ReadToken(reader, "eos_token");
    config.pad_token = ReadToken(reader, "pad_token");
    ReadDecoderTokens(reader, config);
    ReadTemplate(reader, config);
  }
  const std::filesystem::path jinja = folder / "chat_template.jinja";
  if (std::filesystem::exists(jinja)) {
    config.chat_template = ReplaceInvalidUtf8(ReadTextFile(jinja));
    config.chat_template_source = jinja.string();
  }
  return config;
}

}  // namespace kgrpo::tokenizer
