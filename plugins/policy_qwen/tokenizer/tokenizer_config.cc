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
  const std::string source = config.file + ": chat_template";
  if (value->is_string()) {
    config.chat_templates["default"] = {value->get<std::string>(), source};
    return;
  }
  if (!value->is_array()) {
    reader.Fail("chat_template",
                std::string("is a JSON ") + value->type_name() + ", must be a string or an array of {name, template}");
  }
  for (size_t i = 0; i < value->size(); ++i) {
    ObjectReader entry(reader.file(), "chat_template[" + std::to_string(i) + "]", (*value)[i]);
    config.chat_templates[entry.String("name")] = {entry.String("template"), source + "[" + std::to_string(i) + "]"};
  }
}

void ReadTemplateFiles(const std::filesystem::path& folder, TokenizerConfig& config) {
  std::map<std::string, TokenizerConfig::Template> found;
  const auto read = [&](const std::string& name, const std::filesystem::path& file) {
    found[name] = {ReplaceInvalidUtf8(ReadTextFile(file)), file.string()};
  };
  if (std::filesystem::exists(folder / "chat_template.jinja")) read("default", folder / "chat_template.jinja");
  if (const auto others = folder / "additional_chat_templates"; std::filesystem::is_directory(others)) {
    for (const auto& entry : std::filesystem::directory_iterator(others)) {
      if (entry.path().extension() == ".jinja") read(entry.path().stem().string(), entry.path());
    }
  }
  if (!found.empty()) config.chat_templates = std::move(found);
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
    for (const char* key :
         {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
      if (const auto token = ReadToken(reader, key)) config.named_tokens.emplace_back(key, *token);
    }
    ReadDecoderTokens(reader, config);
    ReadTemplate(reader, config);
  }
  ReadTemplateFiles(folder, config);
  return config;
}

}  // namespace kgrpo::tokenizer
