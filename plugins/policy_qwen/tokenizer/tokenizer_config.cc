#include "policy_qwen/tokenizer/tokenizer_config.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "policy_qwen/tokenizer/json_reader.h"
#include "policy_qwen/tokenizer/unicode.h"

namespace kgrpo::tokenizer {
namespace {

using nlohmann::json;

constexpr const char* kQwen2Words =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|"
    "\\s+(?!\\S)|\\s+";

// A token is written as a string, or as an object with its flags.
std::optional<AddedToken> ReadToken(ObjectReader& reader, std::string_view key) {
  const json* value = reader.Find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return AddedToken{.content = value->get<std::string>(), .special = true};
  if (!value->is_object())
    reader.Fail(key, std::string("is a JSON ") + value->type_name() + ", must be a string or an object");
  ObjectReader token = reader.Object(key);
  return ReadAddedToken(token, true);
}

// The tokens with a role and others that are special. What a file gives replaces what is there.
struct SpecialTokens {
  std::vector<std::pair<std::string, std::optional<AddedToken>>> roles;  // by key; nothing where the file has null
  std::vector<AddedToken> extra;

  void Set(const std::string& key, std::optional<AddedToken> token) {
    const auto known = std::ranges::find(roles, key, [](const auto& role) { return role.first; });
    if (known != roles.end()) {
      known->second = std::move(token);
    } else {
      roles.emplace_back(key, std::move(token));
    }
  }

  void Read(const std::string& file, const json& object) {
    ObjectReader reader(file, "", object);
    constexpr std::string_view kRoles[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                           "pad_token", "cls_token", "mask_token"};
    for (const std::string_view key : kRoles) {
      if (object.contains(key)) Set(std::string(key), ReadToken(reader, key));
    }
    for (const auto& [key, value] : object.items()) {  // such as image_token
      const bool other = key.ends_with("_token") && std::ranges::find(kRoles, key) == std::end(kRoles);
      if (other && (value.is_string() || value.is_object())) Set(key, ReadToken(reader, key));
    }
    for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
      const json* value = reader.Find(key);
      if (value == nullptr) continue;
      if (value->is_object()) {
        ObjectReader named = reader.Object(key);
        for (const auto& [name, unused] : value->items()) Set(name, ReadToken(named, name));
        continue;
      }
      extra.clear();
      for (size_t i = 0; i < reader.Array(key).size(); ++i) {
        const std::string name = std::string(key) + "[" + std::to_string(i) + "]";
        const json entry = {{name, (*value)[i]}};
        ObjectReader wrapped(file, "", entry);
        if (auto token = ReadToken(wrapped, name)) extra.push_back(*std::move(token));
      }
    }
  }
};

int32_t ReadId(const ObjectReader& reader, const std::string& key) {
  int32_t id = -1;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
  if (error != std::errc() || end != key.data() + key.size() || id < 0) reader.Fail(key, "is not a token id");
  return id;
}

void ReadDecoderTokens(ObjectReader& reader, TokenizerConfig& config) {
  ObjectReader decoder = reader.Object("added_tokens_decoder");
  for (const auto& [key, value] : reader.Require("added_tokens_decoder").items()) {
    ObjectReader entry = decoder.Object(key);
    AddedToken token = ReadAddedToken(entry, false);
    token.id = ReadId(decoder, key);
    config.added_tokens.push_back(std::move(token));
  }
}

// added_tokens.json: ids by content.
void ReadAddedTokensFile(const std::filesystem::path& path, const SpecialTokens& special, TokenizerConfig& config) {
  if (!std::filesystem::exists(path)) return;
  const std::string file = path.string();
  const json value = ReadJsonFile(path);
  for (const auto& [content, id] : value.items()) {
    if (!id.is_number_unsigned())
      throw Error(KGRPO_ERROR_INVALID, file + ": '" + content + "' is " + id.dump() + ", must be a token id");
    AddedToken token{.content = content, .id = id.get<int32_t>()};
    for (const auto& [key, role] : special.roles) token.special |= role && role->content == content;
    for (const AddedToken& extra : special.extra) token.special |= extra.content == content;
    token.normalized = !token.special;
    config.added_tokens.push_back(std::move(token));
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

std::string ClassName(const json& object) {
  const auto found = object.find("tokenizer_class");
  if (found == object.end() || !found->is_string()) return "";
  std::string name = found->get<std::string>();
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  return name;
}

// The class that transformers' AutoTokenizer takes, as far as it concerns us: see TokenizerConfig::tokenizer_class.
std::string ChooseClass(const std::filesystem::path& folder, const json& tokenizer_config) {
  json model = json::object();
  if (std::filesystem::exists(folder / "config.json")) model = ReadJsonFile(folder / "config.json");
  const auto type = model.find("model_type");
  const std::string model_type = type != model.end() && type->is_string() ? type->get<std::string>() : "";
  std::string name = ClassName(tokenizer_config);
  if (name.empty()) name = ClassName(model);
  // Many Llama 3 folders name the class of Llama 2.
  if (name == "LlamaTokenizer" && model_type != "qwen2" && std::filesystem::exists(folder / "tokenizer.json") &&
      ReadTextFile(folder / "tokenizer.json").find("\"ByteLevel\"") != std::string::npos)
    return "";
  if (model_type == "qwen2" || (model_type == "qwen3" && name.empty())) return "Qwen2Tokenizer";
  const bool mistral = model_type == "mistral" || model_type == "mixtral";  // these always have tokenizer.json's
  for (const char* known : {"Qwen2Tokenizer", "LlamaTokenizer", "GPT2Tokenizer"}) {
    if (name == known && !mistral) return name;
  }
  return "";
}

}  // namespace

TokenizerConfig ReadTokenizerConfig(const std::filesystem::path& folder) {
  TokenizerConfig config;
  config.file = (folder / "tokenizer_config.json").string();
  const json value = std::filesystem::exists(config.file) ? ReadJsonFile(config.file) : json::object();
  ObjectReader reader(config.file, "", value);
  if (reader.Bool("split_special_tokens", false))
    reader.Refuse("split_special_tokens", "is true, which would spell the chat template's markers; set it to false");
  config.tokenizer_class = ChooseClass(folder, value);
  SpecialTokens special;
  // The defaults of the classes' arguments.
  const auto is_class = [&](const char* name) { return config.tokenizer_class == name; };
  const bool qwen = is_class("Qwen2Tokenizer"), llama = is_class("LlamaTokenizer"), gpt = is_class("GPT2Tokenizer");
  const char* const end = "<|endoftext|>";
  const auto set_default = [&](bool applies, const char* key, const char* content) {
    if (applies) special.Set(key, AddedToken{.content = content, .special = true});
  };
  set_default(gpt || llama, "bos_token", llama ? "<s>" : end);
  set_default(qwen || gpt || llama, "eos_token", llama ? "</s>" : end);
  set_default(qwen || gpt || llama, "unk_token", llama ? "<unk>" : end);
  set_default(qwen, "pad_token", end);
  config.add_prefix_space = reader.Bool("add_prefix_space", llama);
  config.legacy = reader.Bool("legacy", false);
  special.Read(config.file, value);

  config.has_added_tokens_decoder = reader.Find("added_tokens_decoder") != nullptr;
  if (config.has_added_tokens_decoder) {
    ReadDecoderTokens(reader, config);
  } else {  // folders of before transformers 4.34
    const std::filesystem::path map = folder / "special_tokens_map.json";
    if (std::filesystem::exists(map)) special.Read(map.string(), ReadJsonFile(map));
    ReadAddedTokensFile(folder / "added_tokens.json", special, config);
  }
  std::ranges::sort(config.added_tokens, {}, &AddedToken::id);
  for (auto& [key, token] : special.roles) {
    if (!token) continue;
    config.named_tokens.emplace_back(key, token->content);
    config.special_tokens.push_back(*std::move(token));
  }
  std::ranges::move(special.extra, std::back_inserter(config.special_tokens));

  ReadTemplate(reader, config);
  const std::filesystem::path jinja = folder / "chat_template.jinja";
  if (std::filesystem::exists(jinja)) {
    config.chat_template = ReplaceInvalidUtf8(ReadTextFile(jinja));
    config.chat_template_source = jinja.string();
  }
  return config;
}

void ApplyTokenizerClass(const TokenizerConfig& config, json& tokenizer) {
  const std::string& name = config.tokenizer_class;
  const auto found = tokenizer.find("model");
  if (name.empty() || found == tokenizer.end() || !found->is_object()) return;
  const bool llama = name == "LlamaTokenizer";
  for (const auto& [key, value] : {std::pair<const char*, json>{"unk_token", nullptr},
                                   {"continuing_subword_prefix", ""},
                                   {"end_of_word_suffix", ""},
                                   {"fuse_unk", llama},
                                   {"byte_fallback", llama},
                                   {"ignore_merges", false}}) {
    (*found)[key] = value;
  }
  const json byte_level = {{"type", "ByteLevel"},
                           {"add_prefix_space", config.add_prefix_space},
                           {"use_regex", !llama && name != "Qwen2Tokenizer"}};
  tokenizer["normalizer"] = nullptr;
  tokenizer["pre_tokenizer"] = byte_level;
  tokenizer["decoder"] = byte_level;
  if (name == "Qwen2Tokenizer") {
    const json split = {{"type", "Split"}, {"pattern", {{"Regex", kQwen2Words}}}, {"behavior", "Isolated"}};
    tokenizer["normalizer"] = {{"type", "NFC"}};
    tokenizer["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", json::array({split, byte_level})}};
  } else if (llama) {
    const char* scheme = !config.add_prefix_space ? "never" : config.legacy ? "always" : "first";
    tokenizer["pre_tokenizer"] = {
        {"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", scheme}, {"split", false}};
    json steps = {{{"type", "Replace"}, {"pattern", {{"String", "\u2581"}}}, {"content", " "}},
                  {{"type", "ByteFallback"}},
                  {{"type", "Fuse"}}};
    if (config.add_prefix_space) steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    tokenizer["decoder"] = {{"type", "Sequence"}, {"decoders", steps}};
  }
}

}  // namespace kgrpo::tokenizer
