#include "policy_qwen/tokenizer/tokenizer_config.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "policy_qwen/files.h"
#include "policy_qwen/tokenizer/json_reader.h"
#include "policy_qwen/tokenizer/unicode.h"

namespace kgrpo::tokenizer {
namespace {

using nlohmann::json;

constexpr const char* kQwen2Words =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|"
    "\\s+(?!\\S)|\\s+";

// Other classes of transformers that do not take tokenizer.json as it stands: NameTokenizer.
constexpr std::string_view kOtherClasses =
    " Albert Bart Barthez Bert BigBird BioGpt Blenderbot BlenderbotSmall CLIP CTRL Camembert CodeGen CodeLlama Cohere"
    " ConvBert CpmAnt Deberta DebertaV2 DistilBert Esm Esmc FNet FSMT Flaubert Funnel GPTNeoX GPTNeoXJapanese GPTSw3"
    " Gemma Herbert LED Lasr LayoutLMv2 LayoutLMv3 LayoutXLM Longformer Luke Lxmert M2M100 MBart MBart50 MLuke MPNet"
    " Marian MarkupLM MobileBert Mvp Nllb Nougat OpenAIGPT PLBart Parakeet Pegasus Phobert ProphetNet Qwen3_5 Reformer"
    " RemBert RoFormer Roberta SeamlessM4T Siglip Siglip2 Splinter SqueezeBert T5 Udop VideoPrism Whisper XGLM XLM"
    " XLMRoberta XLNet ";

// A token is written as a string, or as an object with its flags.
std::optional<AddedToken> ReadToken(ObjectReader& reader, std::string_view key) {
  const json* value = reader.Find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return AddedToken{.content = value->get<std::string>(), .special = true};
  if (!value->is_object()) reader.FailType(key, "a string or an object");
  ObjectReader token = reader.Object(key);
  return ReadAddedToken(token, true);
}

// The tokens with a role and others that are special. What a file gives replaces what is there.
struct SpecialTokens {
  std::vector<std::pair<std::string, std::optional<AddedToken>>> roles = {
      {"bos_token", {}}, {"eos_token", {}}, {"unk_token", {}}, {"sep_token", {}},
      {"pad_token", {}}, {"cls_token", {}}, {"mask_token", {}}};
  std::vector<AddedToken> extra;

  std::optional<AddedToken>* Role(const std::string& key) {
    const auto known = std::ranges::find(roles, key, [](const auto& role) { return role.first; });
    return known == roles.end() ? nullptr : &known->second;
  }

  void Read(const std::string& file, const json& object) {
    ObjectReader reader(file, "", object);
    const auto set = [this](const std::string& key, std::optional<AddedToken> token) {
      if (Role(key) == nullptr) roles.emplace_back(key, std::nullopt);
      *Role(key) = std::move(token);
    };
    for (const auto& [key, value] : object.items()) {  // others than the seven are such as image_token
      const bool other = key.ends_with("_token") && (value.is_string() || value.is_object());
      if (other || Role(key) != nullptr) set(key, ReadToken(reader, key));
    }
    for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
      const json* value = reader.Find(key);
      if (value == nullptr) continue;
      if (value->is_object()) {
        ObjectReader named = reader.Object(key);
        for (const auto& [name, unused] : value->items()) set(name, ReadToken(named, name));
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

int32_t ReadTokenId(const ObjectReader& reader, const std::string& key) {
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
    token.id = ReadTokenId(decoder, key);
    config.added_tokens.push_back(std::move(token));
  }
}

// added_tokens.json: ids by content.
void ReadAddedTokensFile(const std::filesystem::path& path, TokenizerConfig& config) {
  const json value = std::filesystem::exists(path) ? policy::ReadJsonObject(path) : json::object();
  for (const auto& [content, id] : value.items()) {
    if (!id.is_number_unsigned())
      throw Error(KGRPO_ERROR_INVALID, path.string() + ": '" + content + "' is " + id.dump() + ", must be a token id");
    const bool special = std::ranges::count(config.special_tokens, content, &AddedToken::content) > 0;
    config.added_tokens.push_back(
        {.content = content, .id = id.get<int32_t>(), .normalized = !special, .special = special});
  }
}

void ReadChatTemplate(ObjectReader& reader, TokenizerConfig& config) {
  const json* value = reader.Find("chat_template");
  if (value == nullptr) return;
  const std::string source = config.file + ": chat_template";
  if (value->is_string()) {
    config.chat_templates["default"] = {value->get<std::string>(), source};
    return;
  }
  if (value->is_object()) {
    ObjectReader named = reader.Object("chat_template");
    for (const auto& [name, unused] : value->items())
      config.chat_templates[name] = {named.String(name), source + "." + name};
    return;
  }
  if (!value->is_array()) reader.FailType("chat_template", "a string or an array of {name, template}");
  for (size_t i = 0; i < value->size(); ++i) {
    ObjectReader entry(reader.file(), "chat_template[" + std::to_string(i) + "]", (*value)[i]);
    config.chat_templates[entry.String("name")] = {entry.String("template"), source + "[" + std::to_string(i) + "]"};
  }
}

void ReadTemplateFiles(const std::filesystem::path& folder, TokenizerConfig& config) {
  std::map<std::string, TokenizerConfig::Template> found;
  const auto read = [&](const std::string& name, const std::filesystem::path& file) {
    found[name] = {ReplaceInvalidUtf8(policy::ReadFile(file)), file.string()};
  };
  if (std::filesystem::exists(folder / "chat_template.jinja")) read("default", folder / "chat_template.jinja");
  if (const auto others = folder / "additional_chat_templates"; std::filesystem::is_directory(others)) {
    for (const auto& entry : std::filesystem::directory_iterator(others)) {
      if (entry.path().extension() == ".jinja") read(entry.path().stem().string(), entry.path());
    }
  }
  if (!found.empty()) config.chat_templates = std::move(found);
}

std::string ClassName(const json& object) {
  const json value = object.is_object() ? object.value("tokenizer_class", json()) : json();
  std::string name = value.is_string() ? value.get<std::string>() : "";
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  return name;
}

// The class that transformers' AutoTokenizer takes, as far as it concerns us: see TokenizerConfig::tokenizer_class.
std::string ChooseClass(const std::filesystem::path& folder, const json& tokenizer_config) {
  const std::filesystem::path file = folder / "config.json";  // the model's reader reports what is wrong with it
  const json model =
      std::filesystem::is_regular_file(file) ? json::parse(policy::ReadFile(file), nullptr, false) : json();
  const json type = model.is_object() ? model.value("model_type", json()) : json();
  const std::string model_type = type.is_string() ? type.get<std::string>() : "";
  std::string name = ClassName(tokenizer_config);
  if (name.empty()) name = ClassName(model);
  // Many Llama 3 folders name the class of Llama 2.
  if (name == "LlamaTokenizer" && model_type != "qwen2" && std::filesystem::exists(folder / "tokenizer.json") &&
      policy::ReadFile(folder / "tokenizer.json").find("\"ByteLevel\"") != std::string::npos)
    return "";
  if (model_type == "qwen2" || (model_type == "qwen3" && name.empty())) return "Qwen2Tokenizer";
  const bool mistral = model_type == "mistral" || model_type == "mixtral";  // these always have tokenizer.json's
  if (name == "Phi3Tokenizer") name = "LlamaTokenizer";
  for (const char* known : {"Qwen2Tokenizer", "LlamaTokenizer", "GPT2Tokenizer"}) {
    if (name == known && !mistral) return name;
  }
  const bool named = name.ends_with("Tokenizer") && name.find(' ') == std::string::npos;
  if (named && !mistral && kOtherClasses.find(" " + name.substr(0, name.size() - 9) + " ") != kOtherClasses.npos) {
    throw Error(
        KGRPO_ERROR_UNSUPPORTED,
        (folder / "tokenizer_config.json").string() + ": tokenizer_class: is " + name +
            ", which makes steps of its own that are not supported here; if tokenizer.json has the right steps, "
            "set it to \"PreTrainedTokenizerFast\"");
  }
  return "";
}

}  // namespace

TokenizerConfig ReadTokenizerConfig(const std::filesystem::path& folder) {
  TokenizerConfig config;
  config.file = (folder / "tokenizer_config.json").string();
  const json value = std::filesystem::exists(config.file) ? policy::ReadJsonObject(config.file) : json::object();
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
    if (applies) *special.Role(key) = AddedToken{.content = content, .special = true};
  };
  set_default(gpt || llama, "bos_token", llama ? "<s>" : end);
  set_default(qwen || gpt || llama, "eos_token", llama ? "</s>" : end);
  set_default(qwen || gpt || llama, "unk_token", llama ? "<unk>" : end);
  set_default(qwen, "pad_token", end);
  config.add_prefix_space = reader.Bool("add_prefix_space", llama);
  config.legacy = reader.Bool("legacy", false);
  special.Read(config.file, value);

  config.has_added_tokens_decoder = reader.Find("added_tokens_decoder") != nullptr;
  const std::filesystem::path map = folder / "special_tokens_map.json";  // an old file, as is added_tokens.json
  if (!config.has_added_tokens_decoder && std::filesystem::exists(map)) special.Read(map, policy::ReadJsonObject(map));
  for (auto& [key, token] : special.roles) {
    if (!token) continue;
    config.named_tokens.emplace_back(key, token->content);
    config.special_tokens.push_back(*std::move(token));
  }
  std::ranges::move(special.extra, std::back_inserter(config.special_tokens));
  if (config.has_added_tokens_decoder) {
    ReadDecoderTokens(reader, config);
  } else {
    ReadAddedTokensFile(folder / "added_tokens.json", config);
  }
  std::ranges::sort(config.added_tokens, {}, &AddedToken::id);

  ReadChatTemplate(reader, config);
  ReadTemplateFiles(folder, config);
  return config;
}

void ApplyTokenizerClass(const TokenizerConfig& config, json& tokenizer) {
  const auto model = tokenizer.find("model");
  if (config.tokenizer_class.empty() || model == tokenizer.end() || !model->is_object()) return;
  const bool llama = config.tokenizer_class == "LlamaTokenizer", qwen = config.tokenizer_class == "Qwen2Tokenizer";
  for (const char* key : {"unk_token", "continuing_subword_prefix", "end_of_word_suffix", "ignore_merges"})
    model->erase(key);
  for (const char* key : {"fuse_unk", "byte_fallback"}) (*model)[key] = llama;
  const json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", config.add_prefix_space}, {"use_regex", !qwen}};
  const json split = {{"type", "Split"}, {"pattern", {{"Regex", kQwen2Words}}}, {"behavior", "Isolated"}};
  tokenizer["normalizer"] = qwen ? json{{"type", "NFC"}} : json();
  tokenizer["pre_tokenizer"] = qwen ? json{{"type", "Sequence"}, {"pretokenizers", {split, byte_level}}} : byte_level;
  tokenizer["decoder"] = byte_level;
  if (!llama) return;
  const char* scheme = !config.add_prefix_space ? "never" : config.legacy ? "always" : "first";
  tokenizer["pre_tokenizer"] = {
      {"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", scheme}, {"split", false}};
  json steps = {{{"type", "Replace"}, {"pattern", {{"String", "\u2581"}}}, {"content", " "}},
                {{"type", "ByteFallback"}},
                {{"type", "Fuse"}}};
  if (config.add_prefix_space) steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  tokenizer["decoder"] = {{"type", "Sequence"}, {"decoders", steps}};
}

}  // namespace kgrpo::tokenizer
